package org.apache.spark.sql.kafka010

import java.time.Duration
import java.util.concurrent.ConcurrentHashMap

import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.TimeoutException
import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.kafka010.consumer.KafkaPosition
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import streamskit.TopicIds

/** A source for Spark's real-time mode: its own Kafka source, whose batch can be ended before its time is over.
  *
  * It has the options of Spark's source and these: "batch", by what name the open batch of the query is known to
  * `OpenBatch`; and "ids", as `KafkaInOrder` has it.
  */
class KafkaInRealTime extends KafkaAround {
  override def shortName(): String = "kafka-in-real-time"
  override def around(whole: KafkaMicroBatchStream, options: CaseInsensitiveStringMap): MicroBatchStream =
    new StreamInRealTime(whole, options)
}

/** What a query in real-time mode reads now: it ends when its time is over, or when it is told to.
  *
  * What it has read, and the state that came of it, is noted when it ends. So a query that is to stop can do so without
  * that it reads anything again, and one that is waited for need not be waited for until the batch's time is over.
  */
class OpenBatch {
  @volatile private var isEnding = false
  @volatile private var ends = Map.empty[TopicPartition, Long]
  @volatile private var isAwaited = false

  private[kafka010] def begin(): Unit = { isEnding = false; isAwaited = false }

  /** Have it end with the records that its tasks have in hand. */
  def end(): Unit = isEnding = true

  /** Have it end when it has read up to these offsets, as Spark writes them, or finds nothing for a while. */
  def endBehind(offsets: String): Unit = { ends = JsonUtils.partitionOffsets(offsets); isAwaited = true }

  /** Whether a task that has read so far, and has found nothing for so many milliseconds, reads no more of it. */
  private[kafka010] def isOver(partition: TopicPartition, offset: Long, idle: Long): Boolean =
    isEnding || (isAwaited && (offset >= ends.getOrElse(partition, 0L) || idle >= OpenBatch.Nothing))
}

object OpenBatch {
  // In milliseconds: for how long a task waits for a record before it looks around; and for one that is to be there.
  private[kafka010] val Look = 50L
  private val Nothing = 1000L
  private val every = new ConcurrentHashMap[String, OpenBatch]

  /** Whether the tasks hear of it; those in other processes end a batch when its time is over. */
  def canEnd: Boolean = SparkContext.getOrCreate().isLocal

  private[kafka010] def make(name: String): OpenBatch = {
    val batch = new OpenBatch
    if (canEnd) every.put(name, batch)
    batch
  }
  private[kafka010] def forget(name: String, batch: OpenBatch): Unit = every.remove(name, batch)

  /** That of a query; null if it cannot be told to end, or there is none. */
  def of(name: String): OpenBatch = every.get(name)
}

/** The stream of a query: Spark's own, but for when its batches end. */
class StreamInRealTime(whole: KafkaMicroBatchStream, options: CaseInsensitiveStringMap)
    extends StreamAround(whole) with SupportsRealTimeMode {
  private val name = options.get("batch")
  private val batch = OpenBatch.make(name)
  private val ids = new TopicIds(Option(options.get("ids")).getOrElse(""), StreamInOrder.consumerSettings(options))

  override def planInputPartitions(start: Offset): Array[InputPartition] = {
    ids.check()
    batch.begin()
    whole.planInputPartitions(start)
  }

  override def createReaderFactory(): PartitionReaderFactory = RealTimeReaders(name, whole.createReaderFactory())

  override def stop(): Unit = {
    OpenBatch.forget(name, batch)
    ids.close()
    whole.stop()
  }

  override def prepareForRealTimeMode(): Unit = whole.prepareForRealTimeMode()
  override def mergeOffsets(offsets: Array[PartitionOffset]): Offset = whole.mergeOffsets(offsets)
  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = whole.planInputPartitions(start, end)
  override def getDefaultReadLimit: ReadLimit = whole.getDefaultReadLimit
  override def latestOffset(): Offset = whole.latestOffset()
  override def latestOffset(start: Offset, limit: ReadLimit): Offset = whole.latestOffset(start, limit)
}

case class RealTimeReaders(name: String, whole: PartitionReaderFactory) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new RealTimeReader(whole.createReader(partition).asInstanceOf[KafkaBatchPartitionReader], Option(OpenBatch.of(name)))
}

/** Reads a partition, and looks now and then whether the batch is to end. */
class RealTimeReader(whole: KafkaBatchPartitionReader, batch: Option[OpenBatch]) extends SupportsRealTimeRead[InternalRow] {
  private val partition = whole.offsetRange.topicPartition
  private var position = whole.getOffset.partitionOffset

  override def nextWithTimeout(start: java.lang.Long, timeout: java.lang.Long): RecordStatus = {
    val begun = System.nanoTime
    def idle = (System.nanoTime - begun) / 1000000L
    var found = RecordStatus.newStatusWithoutArrivalTime(false)
    while (!found.hasRecord && idle < timeout && !batch.exists(_.isOver(partition, position, idle))) {
      found = whole.nextWithTimeout(start, Math.min(OpenBatch.Look, timeout - idle))
      position = if (found.hasRecord) whole.getOffset.partitionOffset else KafkaPosition.of(whole).getOrElse(position)
    }
    found
  }

  override def next(): Boolean = whole.next()
  override def get(): InternalRow = whole.get()

  /** Behind the last record, and what Kafka notes of transactions there: a reader that finds no record has passed it. */
  override def getOffset: PartitionOffset = KafkaSourcePartitionOffset(partition, position)
  override def close(): Unit = whole.close()
}

package consumer {

  /** Where the consumer of one of Spark's readers goes on; Spark itself looks at the offsets of records alone. */
  private[kafka010] object KafkaPosition {
    private val ofReader = classOf[KafkaBatchPartitionReader].getMethods.find(_.getName.endsWith("$consumer")).get
    private lazy val ofConsumer = {
      val field = classOf[InternalKafkaConsumer].getDeclaredField("consumer")
      field.setAccessible(true)
      field
    }

    /** That of a reader that has handed out all it has fetched; none where it has yet to be found out. */
    def of(reader: KafkaBatchPartitionReader): Option[Long] =
      ofReader.invoke(reader).asInstanceOf[KafkaDataConsumer]._consumer.flatMap { each =>
        val consumer = ofConsumer.get(each).asInstanceOf[KafkaConsumer[_, _]]
        try Some(consumer.position(reader.offsetRange.topicPartition, Duration.ZERO))
        catch { case _: TimeoutException => None } // the partition has another leader, perhaps, or none
      }
  }
}
