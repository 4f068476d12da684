package org.apache.spark.sql.kafka010

import java.util.{Map => JavaMap, Optional}

import org.apache.spark.sql.connector.read.{Scan, ScanBuilder}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A source for Spark's streams around its own Kafka source. */
abstract class KafkaAround extends KafkaSourceProvider {

  /** The stream of a query around Spark's own. */
  def around(whole: KafkaMicroBatchStream, options: CaseInsensitiveStringMap): MicroBatchStream

  override def getTable(options: CaseInsensitiveStringMap): KafkaTable =
    new KafkaTable(options.getBoolean("includeHeaders", false)) {
      override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = new ScanBuilder {
        override def build(): Scan = new KafkaScan(options) {
          override def toMicroBatchStream(checkpoint: String): MicroBatchStream =
            around(super.toMicroBatchStream(checkpoint).asInstanceOf[KafkaMicroBatchStream], options)
        }
      }
    }
}

/** A stream that does what Spark's own does, but for what it says itself. */
abstract class StreamAround(whole: KafkaMicroBatchStream)
    extends MicroBatchStream with SupportsAdmissionControl with ReportsSourceMetrics {
  override def initialOffset(): Offset = whole.initialOffset()
  override def reportLatestOffset(): Offset = whole.reportLatestOffset()
  override def deserializeOffset(json: String): Offset = whole.deserializeOffset(json)
  override def commit(end: Offset): Unit = whole.commit(end)
  override def metrics(latest: Optional[Offset]): JavaMap[String, String] = whole.metrics(latest)
  override def toString: String = whole.toString
}
