package org.apache.spark.sql.kafka010.producer

import java.time.Duration
import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.execution.streaming.runtime.{State, StreamExecution, StreamingQueryWrapper, TERMINATED}
import org.apache.spark.sql.kafka010.OpenBatch

/** What Spark has no call for when a query is to end in good order. */
object Closing {

  private val Idle = 10
  private val Empty = 40

  /** Have a query end after the micro-batch that it is in, if that takes no more than so many milliseconds.
    *
    * `stop()` interrupts its tasks: what they have written already would be written once more, and what reads their
    * state on behalf of Python may do so while it is closed. A query that is marked as ended begins no further
    * micro-batch, but gives up one that is still being planned. So it is marked while a job of it runs, or while it
    * waits for records, or when it has found none for 0.2 seconds: with a commit interval of 0 it never waits. A batch
    * in real-time mode, known to `OpenBatch` by the name `batch`, would go on: it is told to end, and not waited for
    * where it cannot be told. `batch` is empty for micro-batches.
    */
  def finish(query: StreamingQueryWrapper, batch: String, milliseconds: Long): Unit = {
    val goesOn = batch.nonEmpty && OpenBatch.of(batch) == null
    val deadline = System.nanoTime + (if (goesOn) 0 else milliseconds * 1000000)
    def left = (deadline - System.nanoTime) / 1000000
    val thread = query.streamingQuery.queryExecutionThread
    var idle, empty = 0 // between two micro-batches it may be about to begin one
    def isWaiting = idle >= Idle || empty >= Empty
    while (thread.isAlive && left > 0 && !isWaiting && !runsJob(thread)) {
      idle = if (query.status.isTriggerActive) 0 else idle + 1
      empty = if (query.status.isDataAvailable) 0 else empty + 1
      Thread.sleep(5)
    }
    if (left > 0) state(query).set(TERMINATED)
    if (left > 0) Option(OpenBatch.of(batch)).foreach(_.end())
    if (left > 0 && !isWaiting) thread.join(Math.max(1, left))
  }

  private def state(query: StreamingQueryWrapper) =
    classOf[StreamExecution].getMethod("state").invoke(query.streamingQuery).asInstanceOf[AtomicReference[State]]

  private def runsJob(thread: Thread) =
    thread.getStackTrace.exists(call => call.getMethodName == "runJob" && call.getClassName.endsWith(".SparkContext"))

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
