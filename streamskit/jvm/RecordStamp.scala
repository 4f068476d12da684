package streamskit

import java.util.{Map => JavaMap}

import org.apache.kafka.clients.producer.{ProducerInterceptor, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.header.internals.RecordHeaders
import org.apache.spark.sql.streamskit.WriteOrder

/** Gives each record that Spark's Kafka sink sends the timestamp of its stream, which the sink itself cannot set.
  *
  * The timestamp travels in a header, which is taken off again here. A windowed key is sent to the partition of its
  * bare key, as Kafka Streams' WindowedStreamPartitioner does.
  */
class RecordStamp extends ProducerInterceptor[Array[Byte], Array[Byte]] {
  private var windowed: Map[String, (Int, Int)] = Map.empty

  override def configure(configs: JavaMap[String, _]): Unit = {
    val spec = configs.get("streamskit.windowed.topics")
    if (spec != null && spec.toString.nonEmpty)
      windowed = spec.toString.split(",").map { entry =>
        val Array(topic, suffix, partitions) = entry.split(":")
        topic -> (suffix.toInt, partitions.toInt)
      }.toMap
  }

  override def onSend(record: ProducerRecord[Array[Byte], Array[Byte]]) = {
    val stamp = record.headers.lastHeader(RecordStamp.Header)
    if (stamp == null) record
    else {
      // What an interceptor throws is passed over, and the record written with this header: nothing here may throw.
      // That the timestamp is one was looked at when the header was made.
      val all = record.headers.toArray
      val headers = if (all.length == 1) new RecordHeaders() else new RecordHeaders(all).remove(RecordStamp.Header)
      new ProducerRecord(record.topic, partition(record), RecordStamp.time(stamp.value), record.key, record.value, headers)
    }
  }

  private def partition(record: ProducerRecord[Array[Byte], Array[Byte]]): Integer =
    windowed.get(record.topic) match {
      case Some((suffix, partitions)) if record.partition == null && record.key != null =>
        WriteOrder.partition(record.key, suffix, partitions)
      case _ => record.partition
    }

  override def onAcknowledgement(metadata: RecordMetadata, exception: Exception): Unit = ()
  override def close(): Unit = ()
}

object RecordStamp {
  val Header = "streamskit-timestamp"

  /** The time that digits stand for, or null where there is anything else. Every record that is written comes by here. */
  def time(digits: Array[Byte]): java.lang.Long =
    if (digits == null || digits.isEmpty || digits.length > 18) null
    else {
      var time = 0L
      var at = 0
      while (at < digits.length && digits(at) >= '0' && digits(at) <= '9') {
        time = time * 10 + (digits(at) - '0')
        at += 1
      }
      if (at == digits.length) java.lang.Long.valueOf(time) else null
    }
}
