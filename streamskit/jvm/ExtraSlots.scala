package org.apache.spark.sql.streamskit

import java.nio.ByteBuffer

import scala.collection.mutable

import org.apache.spark.{SparkContext, TaskState}
import org.apache.spark.scheduler.local.LocalSchedulerBackend

/** Slots of Spark's beside those of the cores of this machine, for tasks that wait for a record most of the time.
  *
  * Without them a batch in real-time mode would wait for its slots, or keep all others waiting. Spark has no call for it;
  * it counts a slot as free when a task is reported as finished, and passes over that it knows no task of this number.
  * Slots that are given back stay: those who take some later get them.
  */
object ExtraSlots {
  private val NoTask = -1L
  private val taken = mutable.Map.empty[AnyRef, Int]
  private var given: (SparkContext, Int) = (null, 0)

  /** Have so many slots be there for an owner, instead of as many as it has. Spark runs in this process alone. */
  def take(owner: AnyRef, number: Int): Unit = synchronized {
    val context = SparkContext.getOrCreate()
    if (given._1 ne context) { given = (context, 0); taken.clear() }
    taken(owner) = number
    context.schedulerBackend match {
      case local: LocalSchedulerBackend =>
        for (_ <- given._2 until taken.values.sum) local.statusUpdate(NoTask, TaskState.FINISHED, ByteBuffer.allocate(0))
        given = (context, Math.max(given._2, taken.values.sum))
      case _ =>
    }
  }

  def giveBack(owner: AnyRef): Unit = synchronized(taken -= owner)
}
