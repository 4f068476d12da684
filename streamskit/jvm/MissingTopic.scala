package streamskit

import java.util.{Collections, Set => JavaSet}
import java.util.concurrent.{ConcurrentHashMap, ExecutionException, TimeUnit}

import scala.util.Try

import org.apache.kafka.clients.admin.{Admin, Config}
import org.apache.kafka.common.config.ConfigResource
import org.apache.kafka.common.errors.{InvalidTopicException, UnknownTopicOrPartitionException}
import org.apache.spark.sql.api.java.UDF6

/** Says why a topic that a record chooses would not take it: null if it would, a sentence if not.
  *
  * It may not be there: the producer of Spark's Kafka sink would wait a minute for it, and then fail the query. Or the
  * record is none of those that the topic takes, which a producer hears when it is on its way, with all others of its
  * micro-batch. What topics with a name in the program demand is asked before a query starts (`execution.sinks`).
  */
class MissingTopic extends UDF6[String, String, java.lang.Boolean, Integer, java.lang.Long, Integer, String] {

  /** @param servers the settings of an admin client as text
    * @param topic where the record goes
    * @param hasKey whether it has a key
    * @param size how many bytes it has
    * @param time its timestamp
    * @param overhead how many bytes a request has beside it, at the most
    */
  override def call(
      servers: String, topic: String, hasKey: java.lang.Boolean, size: Integer, time: java.lang.Long,
      overhead: Integer): String =
    if (topic == null) null
    else if (!MissingTopic.isThere(servers, topic)) s"UnknownTopicOrPartitionException: there is no topic '$topic'."
    else MissingTopic.demands(servers, topic).refusal(topic, hasKey, size, Option(time).map(_.longValue), overhead).orNull
}

/** What a topic demands of its records: times are milliseconds before and after the broker's clock. */
case class Demands(isCompacted: Boolean, before: Long, after: Long, bytes: Int) {
  def refusal(topic: String, hasKey: Boolean, size: Int, time: Option[Long], overhead: Int): Option[String] = {
    val now = System.currentTimeMillis
    def isFar(time: Long) = (after != Demands.Any && time > now + after) || (before != Demands.Any && time < now - before)
    time.filter(isFar).map(time =>
      s"InvalidTimestampException: the timestamp $time is too far from the broker's clock for topic $topic " +
        "(message.timestamp.after.max.ms and message.timestamp.before.max.ms).")
      .orElse(Option.when(isCompacted && !hasKey)(
        s"InvalidRecordException: topic $topic is compacted, and takes no record without a key."))
      .orElse(Option.when(size > bytes - overhead)(
        s"RecordTooLargeException: a record of $size bytes is larger than topic $topic takes, $bytes bytes."))
  }
}

object Demands {
  val Any: Long = Long.MaxValue
  val none: Demands = Demands(isCompacted = false, Any, Any, Int.MaxValue)

  def of(config: Config): Demands = {
    def said(name: String) = Option(config.get(name)).flatMap(entry => Option(entry.value))
    def distance(name: String) =
      if (said("message.timestamp.type").contains("CreateTime")) said(name).flatMap(text => Try(text.toLong).toOption).getOrElse(Any)
      else Any
    Demands(
      said("cleanup.policy").exists(_.contains("compact")), distance("message.timestamp.before.max.ms"),
      distance("message.timestamp.after.max.ms"), said("max.message.bytes").map(_.toInt).getOrElse(Int.MaxValue))
  }
}

object MissingTopic {
  private val Patience = 1000L
  private val Trust = 5000L // a topic that was there may be deleted
  private val DemandsTrust = 60000L
  private val thereSince = new ConcurrentHashMap[(String, String), java.lang.Long]()
  private val missingSince = new ConcurrentHashMap[(String, String), java.lang.Long]()
  private val known = new ConcurrentHashMap[(String, String), (Demands, Long)]()
  private val admins = new ConcurrentHashMap[String, Admin]()

  def isThere(servers: String, topic: String): Boolean = {
    val place = (servers, topic)
    val (asked, seen) = (missingSince.get(place), thereSince.get(place))
    if (seen != null && System.currentTimeMillis - seen < Trust) true
    else if (asked != null && System.currentTimeMillis - asked < Patience) false
    else if (answers(servers, topic)) { missingSince.remove(place); thereSince.put(place, System.currentTimeMillis); true }
    else { thereSince.remove(place); known.remove(place); missingSince.put(place, System.currentTimeMillis); false }
  }

  /** What a topic demands that is there. */
  def demands(servers: String, topic: String): Demands = {
    val place = (servers, topic)
    val (found, since) = Option(known.get(place)).getOrElse((Demands.none, Long.MinValue / 2))
    if (System.currentTimeMillis - since < DemandsTrust) found
    else {
      val resource = new ConfigResource(ConfigResource.Type.TOPIC, topic)
      // Not everybody who may write to a topic is told; then the broker refuses for itself.
      val now = Try(admin(servers).describeConfigs(Collections.singleton(resource)).all.get(1, TimeUnit.MINUTES).get(resource))
        .map(Demands.of).getOrElse(Demands.none)
      known.put(place, (now, System.currentTimeMillis))
      now
    }
  }

  private def admin(servers: String): Admin = admins.computeIfAbsent(servers, _ => Admin.create(ClientSettings.of(servers)))

  private def answers(servers: String, topic: String): Boolean =
    try { admin(servers).describeTopics(JavaSet.of(topic)).allTopicNames.get(1, TimeUnit.MINUTES); true }
    catch {
      case failure: ExecutionException
          if failure.getCause.isInstanceOf[UnknownTopicOrPartitionException] ||
            failure.getCause.isInstanceOf[InvalidTopicException] => false
    }
}
