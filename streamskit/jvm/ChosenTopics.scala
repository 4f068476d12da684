package org.apache.spark.sql.streamskit

import java.util.{HashSet => JavaHashSet}
import java.util.concurrent.{CompletableFuture, ExecutionException, TimeUnit, TimeoutException}

import scala.util.Try

import org.apache.kafka.clients.producer.KafkaProducer
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException
import streamskit.MissingTopic

/** The topics that records of a sink choose: one that is not there is told within seconds.
  *
  * A producer waits for a topic for a minute, without a word, and then says what it says of a broker that is away, too.
  *
  * @param servers the settings of an admin client as text; "" to leave it to the producer
  */
class ChosenTopics(servers: String) {
  private val seen = new JavaHashSet[String]

  /** Wait until a producer knows a topic, unless it is certain that there is none. */
  def await(producer: KafkaProducer[Array[Byte], Array[Byte]], topic: String): Unit =
    if (servers.nonEmpty && seen.add(topic)) {
      // A broker may make a topic because its producer asks for it.
      val known = CompletableFuture.runAsync(() => { producer.partitionsFor(topic); () }, ChosenTopics.inThread _)
      try known.get(ChosenTopics.Seconds, TimeUnit.SECONDS)
      catch {
        case _: ExecutionException => () // the producer will say so itself, of the record
        case _: TimeoutException if Try(MissingTopic.isThere(servers, topic)).getOrElse(true) => ()
        case _: TimeoutException =>
          throw new UnknownTopicOrPartitionException(
            s"There is no topic '$topic', and none has come in ${ChosenTopics.Seconds} s.")
      }
    }
}

object ChosenTopics {
  private val Seconds = 5L

  private def inThread(task: Runnable): Unit = {
    val thread = new Thread(task, "streamskit: looks for a topic")
    thread.setDaemon(true)
    thread.start()
  }
}
