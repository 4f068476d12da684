package org.apache.spark.sql.kafka010

import java.util.{Map => JavaMap}

import org.apache.kafka.clients.producer.{Callback, KafkaProducer, RecordMetadata}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, SortOrder}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.streamskit.{ChosenTopics, ProducerRecords, StreamThreads, TooLarge, WriteOrder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A sink for Spark's streams: its own Kafka sink, which writes records with timestamps.
  *
  * It takes rows as `ProducerRecords` says, and has the option "windowed" of that, too, and "chosen" of `ChosenTopics`. With the option "writers" the
  * records of a micro-batch are written in the order of their time: then there are the column "writer", of which equal
  * ones are written by one task, and the columns of `WriteOrder`. The option says how many of those tasks there are, and
  * "threads" of which application: one with fewer stream threads has as many of them.
  */
class KafkaWithTime extends KafkaSourceProvider {
  override def shortName(): String = "kafka-with-time"

  override def getTable(options: CaseInsensitiveStringMap): KafkaTable =
    new KafkaTable(false) { // what a source with this name would read; rows to write may have any columns
      override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
        val plain = super.newWriteBuilder(info).build().asInstanceOf[KafkaWrite]
        new WriteBuilder with SupportsStreamingUpdateAsAppend {
          override def build(): Write =
            if (info.options.containsKey("writers")) new WriteByTime(plain, info) else new WriteWithTime(plain, info)
        }
      }
    }
}

class WriteWithTime(plain: KafkaWrite, info: LogicalWriteInfo)
    extends KafkaWrite(plain.topic, plain.producerParams, plain.schema) {
  private def writers = WritersWithTime(
    producerParams, schema, info.options.getOrDefault("windowed", ""), info.options.getOrDefault("chosen", ""))

  override def toBatch: BatchWrite = new BatchWrite {
    override def createBatchWriterFactory(physical: PhysicalWriteInfo): DataWriterFactory = writers
    override def useCommitCoordinator: Boolean = false
    override def commit(messages: Array[WriterCommitMessage]): Unit = ()
    override def abort(messages: Array[WriterCommitMessage]): Unit = ()
  }

  override def toStreaming: StreamingWrite = new StreamingWrite {
    override def createStreamingWriterFactory(physical: PhysicalWriteInfo): StreamingDataWriterFactory = writers
    override def useCommitCoordinator: Boolean = false
    override def commit(epoch: Long, messages: Array[WriterCommitMessage]): Unit = ()
    override def abort(epoch: Long, messages: Array[WriterCommitMessage]): Unit = ()
  }
}

/** A write whose tasks have each their own rows, in order. */
class WriteByTime(plain: KafkaWrite, info: LogicalWriteInfo)
    extends WriteWithTime(plain, info) with RequiresDistributionAndOrdering {
  override def requiredNumPartitions: Int = {
    val writers = info.options.getInt("writers", 1)
    StreamThreads.of(info.options.getOrDefault("threads", "")).fold(writers)(math.min(writers, _))
  }
  override def requiredDistribution: Distribution =
    Distributions.clustered(Array[Expression](Expressions.column("writer")))
  override def requiredOrdering: Array[SortOrder] = WriteOrder.of(info.schema)
}

case class WritersWithTime(settings: JavaMap[String, Object], rows: StructType, windowed: String, chosen: String)
    extends DataWriterFactory with StreamingDataWriterFactory {
  override def createWriter(partition: Int, task: Long): DataWriter[InternalRow] =
    new WriterWithTime(settings, rows, windowed, chosen)
  override def createWriter(partition: Int, task: Long, epoch: Long): DataWriter[InternalRow] =
    createWriter(partition, task)
}

/** Spark's own writer, but for what it makes of a row. */
private class WriterWithTime(settings: JavaMap[String, Object], rows: StructType, windowed: String, chosen: String)
    extends KafkaDataWriter(None, settings, toAttributes(rows)) {
  private val records = new ProducerRecords(rows, windowed)
  private val topics = new ChosenTopics(chosen)
  private val noteFailure = new Callback {
    override def onCompletion(where: RecordMetadata, failure: Exception): Unit =
      if (failure != null && failedWrite == null) failedWrite = failure
  }

  override protected def sendRow(row: InternalRow, producer: KafkaProducer[Array[Byte], Array[Byte]]): Unit = {
    val record = records.of(row)
    topics.await(producer, record.topic)
    producer.send(record, noteFailure)
    if (failedWrite != null) failedWrite = TooLarge.of(failedWrite, record)
  }
}
