package org.apache.spark.sql.kafka010

import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.kafka.clients.consumer.{ConsumerConfig, KafkaConsumer, OffsetOutOfRangeException}
import org.apache.kafka.common.TopicPartition
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import streamskit.{BatchPlanner, Lookahead, RecordSizes, TopicIds}

/** A source for Spark's streams: its own Kafka source, which takes the records of several topics in the order of their
  * timestamps, as a task of Kafka Streams does, and not so many of each.
  *
  * It has the options of Spark's source and these: "first", topics that are read to their end before all others;
  * "most", how many records a micro-batch takes, and "bytes", how many bytes, about; "idle", for how many milliseconds a partition without records is waited
  * for (below 0, micro-batches end where those of Spark's source would); "merged", whether the partitions of equal
  * number are read by one task of Spark, record by record in order; "ids", the ids of the topics: a micro-batch fails
  * where one of them is another topic by now; and "patience", what `default.api.timeout.ms` is for all clients but those
  * that Spark has in the driver.
  *
  * The ends that it chooses are in Spark's log of offsets like any others: what was begun is read again as it was.
  */
class KafkaInOrder extends KafkaAround {
  override def shortName(): String = "kafka-in-order"
  override def around(whole: KafkaMicroBatchStream, options: CaseInsensitiveStringMap): MicroBatchStream =
    new StreamInOrder(whole, options)
}

/** The stream of a query: Spark's own, but for where a micro-batch ends and which records come after each other. */
class StreamInOrder(whole: KafkaMicroBatchStream, options: CaseInsensitiveStringMap) extends StreamAround(whole) {
  private val topics = options.get("subscribe").split(",").toSeq
  private val merged = options.getBoolean("merged", false)
  private val idle = options.getLong("idle", 0)
  private val planner = new BatchPlanner(
    topics, Option(options.get("first")).toSeq.flatMap(_.split(",")).toSet,
    options.getLong("most", Long.MaxValue), idle, () => new Lookahead(new KafkaConsumer(consumerSettings))
  )

  private def consumerSettings = StreamInOrder.consumerSettings(options)

  private val ids = new TopicIds(Option(options.get("ids")).getOrElse(""), consumerSettings)

  override def getDefaultReadLimit: ReadLimit = if (idle < 0) whole.getDefaultReadLimit else ReadLimit.allAvailable()

  private val sizes = Option(options.get("bytes")).map { bytes =>
    val settings = consumerSettings
    settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, Integer.valueOf(10))
    settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, Integer.valueOf(64 * 1024)) // a few records are enough
    new RecordSizes(bytes.toLong, () => new KafkaConsumer(settings))
  }

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val found = chosen(start, limit, Long.MaxValue)
    val fitting = if (found == null) None else sizes.flatMap(_.fitting(offsets(start), offsets(found)))
    fitting.fold(found)(most => chosen(start, if (idle < 0) ReadLimit.maxRows(most) else limit, most))
  }

  private def chosen(start: Offset, limit: ReadLimit, fitting: Long): Offset = {
    val found = whole.latestOffset(start, limit)
    if (idle < 0 || found == null) found
    else
      try KafkaSourceOffset(planner.end(offsets(start), offsets(found), System.currentTimeMillis, fitting))
      catch { case _: OffsetOutOfRangeException => found } // Spark says itself what is lost
  }

  private def offsets(each: Offset): Map[TopicPartition, Long] = KafkaSourceOffset(each).partitionToOffsets

  override def latestOffset(): Offset =
    throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) should be called instead")

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    ids.check() // here, and not where an end is chosen: also what was planned before a restart comes by here
    val ranges = whole.planInputPartitions(start, end).map(each => patient(each.asInstanceOf[KafkaBatchInputPartition]))
    if (!merged) ranges.toArray
    else {
      val tasks = ranges.groupBy(_.offsetRange.topicPartition.partition).toSeq.sortBy(_._1).map(_._2)
      tasks.map(each => RangesOfTask(each.sortBy(range => topics.indexOf(range.offsetRange.topicPartition.topic)))).toArray
    }
  }

  private def patient(range: KafkaBatchInputPartition): KafkaBatchInputPartition =
    Option(options.get("patience")).fold(range) { milliseconds =>
      val settings = new java.util.HashMap[String, Object](range.executorKafkaParams)
      settings.put(ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, milliseconds)
      range.copy(executorKafkaParams = settings)
    }

  override def createReaderFactory(): PartitionReaderFactory =
    if (merged) MergingReaderFactory(whole.createReaderFactory()) else whole.createReaderFactory()


  /** Closes the clients. One that asks a broker which is away gives that up after a while, and nobody waits for it. */
  override def stop(): Unit = {
    val clients = Seq[() => Unit](() => planner.close(), () => sizes.foreach(_.close()), () => ids.close(), () => whole.stop())
    val closing = new Thread(() => clients.foreach(close => Try(close())), "close the clients of a source")
    closing.setDaemon(true)
    closing.start()
    closing.join(StreamInOrder.CloseMilliseconds)
  }
}

object StreamInOrder {
  private val CloseMilliseconds = 1000

  /** The settings of a client in the driver that looks at the topics of a source with these options. */
  def consumerSettings(options: CaseInsensitiveStringMap): JavaMap[String, Object] = {
    val own = options.asCaseSensitiveMap.asScala.collect {
      case (name, value) if name.toLowerCase.startsWith("kafka.") => name.drop("kafka.".length) -> value
    }
    val settings = KafkaSourceProvider.kafkaParamsForDriver(own.toMap)
    val changed = new java.util.HashMap[String, Object](settings)
    changed.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none")
    changed.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, Integer.valueOf(5000))
    changed.put(ConsumerConfig.RECEIVE_BUFFER_CONFIG, Integer.valueOf(-1))
    // They are only asked for what is there. What they fetch beyond an end would keep their next question waiting.
    changed.put(ConsumerConfig.FETCH_MIN_BYTES_CONFIG, Integer.valueOf(1))
    changed.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, Integer.valueOf(5))
    // Spark makes its own clients anew when they have waited in vain; nobody does that for these.
    Option(options.get("patience")).foreach(changed.put(ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, _))
    changed.remove(ConsumerConfig.GROUP_ID_CONFIG)
    changed
  }
}

/** The partitions of equal number, one of each topic: what a task of Kafka Streams reads. */
case class RangesOfTask(ranges: Seq[KafkaBatchInputPartition]) extends InputPartition

case class MergingReaderFactory(ofRange: PartitionReaderFactory) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new MergingReader(partition.asInstanceOf[RangesOfTask].ranges.map(ofRange.createReader))
}

/** Reads several partitions: the one whose next record is the earliest goes on. Mirrors `PartitionGroup`. */
class MergingReader(readers: Seq[PartitionReader[InternalRow]]) extends PartitionReader[InternalRow] {
  private val Timestamp = 5
  private var left: Option[Seq[PartitionReader[InternalRow]]] = None
  private var current: PartitionReader[InternalRow] = _

  override def next(): Boolean = {
    val ready = left match {
      case None => readers.filter(_.next())
      case Some(some) if !current.next() => some.filter(_ ne current)
      case Some(some) => some
    }
    left = Some(ready)
    if (ready.nonEmpty) current = ready.minBy(_.get.getLong(Timestamp))
    ready.nonEmpty
  }

  override def get(): InternalRow = current.get
  override def close(): Unit = readers.foreach(_.close())
}
