package streamskit

import java.time.Duration
import java.util.{List => JavaList}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.Consumer
import org.apache.kafka.common.{KafkaException, TopicPartition}

/** Says how many of the records that a micro-batch is about to take fit into so many bytes.
  *
  * It looks at a few at the beginning, in the middle and at the end of what is to be taken from each of the partitions
  * with most of them: what the topics held before says nothing of records that have become large.
  *
  * @param bytes how many a micro-batch takes
  * @param open opens what reads
  */
class RecordSizes(bytes: Long, open: () => Consumer[Array[Byte], Array[Byte]]) {
  type Offsets = Map[TopicPartition, Long]

  private val TooFew = 500 // of which each may be as large as a topic allows by default
  private val Looked = 8
  private val Patience = Duration.ofSeconds(1)
  private val BesideData = 50
  private var opened: Option[Consumer[Array[Byte], Array[Byte]]] = None

  /** How many records fit; None if all between these offsets do, or nobody knows. */
  def fitting(start: Offsets, end: Offsets): Option[Long] = {
    val counts = end.collect { case (where, to) if start.get(where).exists(_ < to) => where -> (to - start(where)) }
    val total = counts.values.sum
    if (total < TooFew) None
    else {
      val largest = counts.toSeq.sortBy { case (where, count) => (-count, where.toString) }.take(Looked)
      val looked = try largest.flatMap { case (where, count) => average(where, start(where), count).map(_ -> count) }
      catch { case _: KafkaException => Nil } // whoever reads them says it better
      val weight = looked.map(_._2).sum
      val size = if (weight == 0) 0.0 else looked.map { case (each, count) => each * count }.sum / weight
      if (size * total <= bytes) None else Some((bytes / size).toLong.max(1))
    }
  }

  def close(): Unit = opened.foreach(_.close(Duration.ofSeconds(5)))

  private def average(where: TopicPartition, start: Long, count: Long): Option[Double] = {
    val consumer = opened.getOrElse { opened = Some(open()); opened.get }
    consumer.assign(JavaList.of(where))
    val found = Seq(start, start + count / 2, (start + count - 10).max(start)).flatMap { offset =>
      consumer.seek(where, offset)
      val sizes = consumer.poll(Patience).asScala.toSeq.map { record =>
        record.serializedKeySize.max(0) + record.serializedValueSize.max(0) + BesideData
      }
      if (sizes.isEmpty) None else Some(sizes.map(_.toDouble).sum / sizes.size)
    }
    if (found.isEmpty) None else Some(found.sum / found.size)
  }
}
