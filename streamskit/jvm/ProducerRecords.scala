package org.apache.spark.sql.streamskit

import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Arrays, List => JavaList}

import org.apache.kafka.clients.producer.ProducerRecord
import org.apache.kafka.common.errors.RecordTooLargeException
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.RecordHeader
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** The records that the rows of a sink stand for.
  *
  * Rows have the columns topic, key, value, timestamp, in milliseconds, and headers, and perhaps partition. A windowed
  * key goes to the partition of its bare key, as with Kafka Streams' WindowedStreamPartitioner.
  *
  * @param schema of the rows
  * @param windowed the topics with windowed keys, separated by commas: "topic:bytes of the window:partitions"
  */
class ProducerRecords(schema: StructType, windowed: String) {
  type Record = ProducerRecord[Array[Byte], Array[Byte]]

  private val Seq(topic, key, value, timestamp, headers) =
    Seq("topic", "key", "value", "timestamp", "headers").map(schema.fieldIndex)
  private val partition = schema.getFieldIndex("partition").getOrElse(-1)
  private val suffixes = windowed.split(',').filter(_.nonEmpty).map { entry =>
    val Array(topic, suffix, partitions) = entry.split(':')
    topic -> (suffix.toInt, partitions.toInt)
  }.toMap

  // The names of a few topics, decoded once: those of most queries.
  private val topics = new Array[UTF8String](ProducerRecords.Topics)
  private val names = new Array[String](ProducerRecords.Topics)
  private var next = 0

  def of(row: InternalRow): Record = {
    val to = nameOf(row.getUTF8String(topic))
    val bytes = if (row.isNullAt(key)) null else row.getBinary(key)
    val content = if (row.isNullAt(value)) null else row.getBinary(value)
    new ProducerRecord(to, partitionOf(row, to, bytes), row.getLong(timestamp), bytes, content, headersOf(row))
  }

  private def nameOf(topic: UTF8String): String = {
    var at = 0
    while (at < topics.length && topic != topics(at)) at += 1
    if (at < topics.length) names(at)
    else {
      val name = topic.toString
      topics(next) = topic.copy()
      names(next) = name
      next = (next + 1) % topics.length
      name
    }
  }

  private def partitionOf(row: InternalRow, to: String, bytes: Array[Byte]): Integer =
    if (partition >= 0 && !row.isNullAt(partition)) Integer.valueOf(row.getInt(partition))
    else if (suffixes.isEmpty || bytes == null) null
    else suffixes.get(to).map { case (suffix, partitions) =>
      Integer.valueOf(WriteOrder.partition(bytes, suffix, partitions))
    }.orNull

  private def headersOf(row: InternalRow): JavaList[Header] =
    if (row.isNullAt(headers)) null
    else {
      val pairs = row.getArray(headers)
      val every = new Array[Header](pairs.numElements)
      for (number <- every.indices) {
        val pair = pairs.getStruct(number, 2)
        every(number) = new RecordHeader(pair.getUTF8String(0).toString, if (pair.isNullAt(1)) null else pair.getBinary(1))
      }
      Arrays.asList(every: _*)
    }
}

object ProducerRecords {
  private val Topics = 8
}

/** What a producer says of a record that is too large to be sent at all, with the topic and the key of the record.
  *
  * One that a broker finds too large was sent with others, and Kafka does not say which of them it was.
  */
object TooLarge {
  private val Longest = 100

  def of(failure: Exception, record: ProducerRecord[Array[Byte], Array[Byte]]): Exception = failure match {
    case _: RecordTooLargeException if failure.getMessage.endsWith("max.request.size configuration.") =>
      new RecordTooLargeException(s"${failure.getMessage} It is for topic '${record.topic}', ${of(record.key)}.")
    case _ => failure
  }

  private def of(key: Array[Byte]): String =
    if (key == null) "without a key"
    else {
      val text = new String(key, UTF_8)
      if (text.length > Longest || text.exists(each => each.isControl || each == '\uFFFD'))
        s"with a key of ${key.length} bytes, ${key.take(Longest / 2).map(each => f"$each%02x").mkString}"
      else s"with the key '$text'"
    }
}
