package org.apache.spark.sql.kafka010.producer

import java.time.Duration
import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.execution.streaming.runtime.{State, StreamExecution, StreamingQueryWrapper, TERMINATED}

/** What Spark has no call for when a query is to end in good order. */
object Closing {

  /** Have a query begin no further micro-batch. It goes on with the one that it is in, and ends after it.
    *
    * `stop()` marks it in the same way, but interrupts its tasks as well: what they have written already would be
    * written once more, and what reads their state on behalf of Python may do so while it is closed.
    */
  def beginNoMore(query: StreamingQueryWrapper): Unit =
    classOf[StreamExecution].getMethod("state").invoke(query.streamingQuery).asInstanceOf[AtomicReference[State]]
      .set(TERMINATED)

  /** Close the producers whose `client.id` ends so at once, which Spark would keep for a while; return how many they were.
    *
    * Records that they hold back, as the broker is away, are given up: they must not come after those of the next run.
    */
  def closeProducers(client: String): Int = {
    val field = InternalKafkaProducerPool.getClass.getDeclaredField("pool")
    field.setAccessible(true)
    val kept = field.get(InternalKafkaProducerPool).asInstanceOf[InternalKafkaProducerPool].getAsMap
    def isIts(setting: (String, Object)) = setting._1 == "client.id" && setting._2.toString.endsWith(client)
    val its = kept.collect { case (settings, entry) if settings.exists(isIts) => entry.producer }
    its.foreach(_.producer.close(Duration.ZERO))
    its.size
  }
}
