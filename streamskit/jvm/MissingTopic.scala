package streamskit

import java.util.{Set => JavaSet}
import java.util.concurrent.{ConcurrentHashMap, ExecutionException, TimeUnit}

import org.apache.kafka.clients.admin.Admin
import org.apache.kafka.common.errors.{InvalidTopicException, UnknownTopicOrPartitionException}
import org.apache.spark.sql.api.java.UDF2

/** Says what is wrong with a topic to write to: null if it is there, a sentence if it is not.
  *
  * The producer of Spark's Kafka sink would wait a minute for such a topic, and then fail the query.
  */
class MissingTopic extends UDF2[String, String, String] {
  override def call(servers: String, topic: String): String =
    if (topic == null || MissingTopic.isThere(servers, topic)) null
    else s"UnknownTopicOrPartitionException: there is no topic '$topic'."
}

object MissingTopic {
  private val Patience = 1000L
  private val Trust = 5000L // a topic that was there may be deleted
  private val thereSince = new ConcurrentHashMap[(String, String), java.lang.Long]()
  private val missingSince = new ConcurrentHashMap[(String, String), java.lang.Long]()
  private val admins = new ConcurrentHashMap[String, Admin]()

  def isThere(servers: String, topic: String): Boolean = {
    val place = (servers, topic)
    val (asked, seen) = (missingSince.get(place), thereSince.get(place))
    if (seen != null && System.currentTimeMillis - seen < Trust) true
    else if (asked != null && System.currentTimeMillis - asked < Patience) false
    else if (answers(servers, topic)) { missingSince.remove(place); thereSince.put(place, System.currentTimeMillis); true }
    else { thereSince.remove(place); missingSince.put(place, System.currentTimeMillis); false }
  }

  private def answers(servers: String, topic: String): Boolean = {
    val admin = admins.computeIfAbsent(servers, _ => Admin.create(ClientSettings.of(servers)))
    try { admin.describeTopics(JavaSet.of(topic)).allTopicNames.get(1, TimeUnit.MINUTES); true }
    catch {
      case failure: ExecutionException
          if failure.getCause.isInstanceOf[UnknownTopicOrPartitionException] ||
            failure.getCause.isInstanceOf[InvalidTopicException] => false
    }
  }
}
