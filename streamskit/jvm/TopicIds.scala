package streamskit

import java.util.{Map, UUID}
import java.util.concurrent.ExecutionException

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.Admin
import org.apache.kafka.common.TopicCollection

/** Compares topics with those that a query began to read: one that was deleted and made anew has another id.
  *
  * @param known topics and their ids, as "trades=18f894fd-2241-43cc-8dcc-5b85a053794f,orders=..."
  * @param settings of another client of the same cluster
  */
class TopicIds(known: String, settings: Map[String, Object]) extends AutoCloseable {
  private val ids = known.split(",").filter(_.nonEmpty).map(_.split("=", 2)).map(pair => pair(0) -> pair(1)).toMap
  private var admin: Option[Admin] = None

  /** Throw an error unless all topics are those that were known; what an offset means is not known otherwise. */
  def check(): Unit = if (ids.nonEmpty) {
    val described = connected.describeTopics(TopicCollection.ofTopicNames(ids.keys.toList.asJava)).allTopicNames
    val found = try described.get catch { case failure: ExecutionException => throw failure.getCause }
    for ((topic, id) <- ids) {
      val now = found.get(topic).topicId
      val isSame = new UUID(now.getMostSignificantBits, now.getLeastSignificantBits).toString == id
      if (!isSame) throw new IllegalStateException(s"${TopicIds.Remade} '$topic' was deleted and made anew.")
    }
  }

  override def close(): Unit = admin.foreach(_.close(java.time.Duration.ZERO))

  private def connected: Admin = admin.getOrElse {
    admin = Some(Admin.create(ClientSettings.ofAdmin(settings)))
    admin.get
  }
}

object TopicIds { val Remade = "STREAMSKIT_TOPIC_REMADE" }
