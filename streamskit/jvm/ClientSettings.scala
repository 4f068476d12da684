package streamskit

import java.util.{HashMap => JavaHashMap, Map => JavaMap}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.kafka.clients.admin.AdminClientConfig

/** What a client needs to reach a cluster and to be let in, as `streamskit/kafka/client_libraries.py` writes it. */
object ClientSettings {
  private val json = new ObjectMapper

  /** The settings that a text holds: JSON, or an address alone. Secrets are named by the file in which they stand. */
  def of(text: String): JavaHashMap[String, Object] = {
    val settings = new JavaHashMap[String, Object]
    if (text.startsWith("{")) json.readTree(text).fields.forEachRemaining(each => settings.put(each.getKey, each.getValue.asText))
    else settings.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, text)
    settings
  }

  /** Those of another client's settings that one which administers has, too. */
  def ofAdmin(settings: JavaMap[String, Object]): JavaHashMap[String, Object] = {
    val own = new JavaHashMap[String, Object]
    for ((name, value) <- settings.asScala)
      if (AdminClientConfig.configNames.contains(name) || name.startsWith("config.providers")) own.put(name, value)
    own
  }
}
