package org.apache.spark.sql.kafka010

import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, SortOrder}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.streamskit.{StreamThreads, WriteOrder}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A sink for Spark's streams: its own Kafka sink, which writes the records of a micro-batch in the order of their time.
  *
  * It takes the rows of Spark's sink with three columns more: "writer", of which equal ones are written by one task, and
  * the columns of `WriteOrder`. The option "writers" says how many of those tasks there are, "threads" of which
  * application: one with fewer stream threads has as many of them.
  */
class KafkaByTime extends KafkaSourceProvider {
  override def shortName(): String = "kafka-by-time"

  override def getTable(options: CaseInsensitiveStringMap): KafkaTable =
    new KafkaTable(options.getBoolean("includeHeaders", false)) {
      private def plain(info: LogicalWriteInfo): Write = super.newWriteBuilder(info).build()

      override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
        new WriteBuilder with SupportsStreamingUpdateAsAppend {
          override def build(): Write = new WriteByTime(plain(info), info)
        }
    }
}

/** A write whose tasks have each their own rows, in order. */
class WriteByTime(plain: Write, info: LogicalWriteInfo) extends RequiresDistributionAndOrdering {
  override def toStreaming: StreamingWrite = plain.toStreaming
  override def requiredNumPartitions: Int = {
    val writers = info.options.getInt("writers", 1)
    StreamThreads.of(info.options.getOrDefault("threads", "")).fold(writers)(math.min(writers, _))
  }
  override def requiredDistribution: Distribution =
    Distributions.clustered(Array[Expression](Expressions.column("writer")))
  override def requiredOrdering: Array[SortOrder] = WriteOrder.of(info.schema)
}
