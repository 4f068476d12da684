package org.apache.spark.sql.kafka010

import scala.collection.mutable

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.kafka010.consumer.KafkaPosition
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.UninterruptibleThread

case class RecordReaders(whole: PartitionReaderFactory) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new RecordReader(whole.createReader(partition).asInstanceOf[KafkaBatchPartitionReader])
}

/** Reads a partition as Spark's own reader does, with fewer steps for a record.
  *
  * That locks its thread against interrupts for each record, and makes a row of it in three steps.
  */
class RecordReader(whole: KafkaBatchPartitionReader) extends PartitionReader[InternalRow] {
  private val MostAhead = 100
  private val range = whole.offsetRange
  private val consumer = KafkaPosition.consumerOf(whole)
  private val rows = new RecordRows(range.topic, whole.includeHeaders)
  private val ahead = mutable.Queue.empty[ConsumerRecord[Array[Byte], Array[Byte]]]
  private var offset = range.fromOffset
  private var current: UnsafeRow = _

  override def next(): Boolean = {
    if (ahead.isEmpty) Thread.currentThread match {
      case thread: UninterruptibleThread => thread.runUninterruptibly(readAhead())
      case _ => readAhead()
    }
    val isThere = ahead.nonEmpty
    if (isThere) current = rows.of(ahead.dequeue())
    isThere
  }

  private def readAhead(): Unit =
    while (offset < range.untilOffset && ahead.size < MostAhead) {
      val record = consumer.get(offset, range.untilOffset, whole.pollTimeoutMs, whole.failOnDataLoss)
      if (record != null) ahead += record
      offset = if (record == null) range.untilOffset else record.offset + 1
    }

  override def get(): InternalRow = current
  override def currentMetricsValues(): Array[CustomTaskMetric] = whole.currentMetricsValues()
  override def close(): Unit = whole.close()
}

/** The rows of a topic's records, in the columns of Spark's source. Spark itself makes those of unusual ones. */
class RecordRows(topic: String, includeHeaders: Boolean) {
  private val LastYear = 253402300800000L // where that of four digits ends: later times, and early ones, are Spark's matter
  private val unusual = new KafkaRecordToRowConverter().toUnsafeRowProjector(includeHeaders)
  private val writer = new UnsafeRowWriter(KafkaRecordToRowConverter.kafkaSchema(includeHeaders).size, 512)
  private val name = UTF8String.fromString(topic)

  def of(record: ConsumerRecord[Array[Byte], Array[Byte]]): UnsafeRow = {
    val isUsual = record.timestamp >= 0 && record.timestamp < LastYear && !record.headers.iterator.hasNext
    if (isUsual) written(record) else unusual(record)
  }

  private def written(record: ConsumerRecord[Array[Byte], Array[Byte]]): UnsafeRow = {
    writer.reset()
    writer.zeroOutNullBytes()
    write(0, record.key)
    write(1, record.value)
    writer.write(2, name)
    writer.write(3, record.partition)
    writer.write(4, record.offset)
    writer.write(5, record.timestamp * 1000)
    writer.write(6, record.timestampType.id)
    if (includeHeaders) writer.setNullAt(7)
    writer.getRow
  }

  private def write(column: Int, data: Array[Byte]): Unit =
    if (data == null) writer.setNullAt(column) else writer.write(column, data)
}
