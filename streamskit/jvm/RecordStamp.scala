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
      val headers = new RecordHeaders(record.headers.toArray).remove(RecordStamp.Header)
      val timestamp = Option(stamp.value).flatMap(new String(_).toLongOption).map(java.lang.Long.valueOf).orNull
      new ProducerRecord(record.topic, partition(record), timestamp, record.key, record.value, headers)
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

object RecordStamp { val Header = "streamskit-timestamp" }
