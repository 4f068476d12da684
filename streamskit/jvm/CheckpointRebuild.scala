package org.apache.spark.sql.streamskit

import java.util.UUID

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.kafka.clients.consumer.ConsumerRecord

/** Makes a query's checkpoint anew from the copy that `CheckpointCopy` has kept of it on a topic.
  *
  * The new one begins with a micro-batch 0 that has read all that the old one had read, and is done.
  *
  * @param folder where to make the checkpoint; it must not be there yet, and may be moved then, as any other
  */
class CheckpointRebuild(servers: String, topic: String, folder: String) {
  private val files = new CheckpointFiles(folder)
  private val parts = new PartedRows

  /** Make the checkpoint, and return how many rows its state has. */
  def run(): Long = {
    val position = CheckpointCopy.position(servers, topic).get
    val offsets = position.get("offsets").asText
    val (said, inPython) = (CheckpointFiles.said(offsets), texts(position, "in python").toSet)
    val hasIds = Option(position.get("has ids")).exists(_.asBoolean)
    val stores = mutable.LinkedHashMap.empty[String, OpenedStore]
    try {
      texts(position, "stores").filter(_.matches("""\d+/\d+""")).foreach { name =>
        stores(name) = files.opened(name, inPython(name.takeWhile(_ != '/')), said, hasIds)
        stores(name).load(0, None, false, false)
        stores(name).families
      }
      Transactions.foreachRecord(servers, topic, position.get("from").asLong)(take(_, stores))
      val ids = stores.map { case (name, store) => name -> store.commit(false)._2.stateStoreCkptId }
      val rows = stores.values.map(_.metricsOpt.get.numCommittedKeys).sum
      new TimeFiles(s"$folder/stream-time").writeFirst(texts(position, "stream times").flatMap(TimeFile.of))
      files.write("metadata", s"""{"id":"${UUID.randomUUID}"}""".getBytes)
      files.write("offsets/0", offsets.getBytes)
      files.write("commits/0", CheckpointRebuild.commit(said.get("batchWatermarkMs").asLong, ids).getBytes)
      rows
    } finally stores.values.foreach(_.close())
  }

  private def take(
      record: ConsumerRecord[Array[Byte], Array[Byte]], stores: collection.Map[String, OpenedStore]): Unit =
    CheckpointCopy.partOf(record.key) match {
      case Some(_) => parts.take(record.key, record.value)
      case None if CheckpointCopy.noteOf(record.key).isDefined =>
        files.write(CheckpointCopy.noteOf(record.key).get, record.value)
      case None =>
        val value = Option(record.headers.lastHeader("parts")) match {
          case Some(count) => parts.whole(record.key, record.value, new String(count.value).toInt)
          case None => Some(record.value)
        }
        for (found <- value; row <- CheckpointCopy.row(record.key, found) if !CheckpointCopy.isOfRun(row.key))
          stores.get(row.store).foreach(_.change(row))
    }

  private def texts(position: JsonNode, name: String): Seq[String] =
    Option(position.get(name)).toSeq.flatMap(_.elements.asScala.map(_.asText))
}

object CheckpointRebuild {

  /** What Spark's log says of a micro-batch that is done: the watermark of the next, and the ids of stores that have any.
    *
    * @param ids of each store, by the numbers of operator and partition, as "0/3"
    */
  def commit(watermark: Long, ids: collection.Map[String, Option[String]]): String = {
    val said = CheckpointFiles.json.createObjectNode.put("nextBatchWatermarkMs", watermark)
    val known = ids.collect { case (store, Some(id)) =>
      val Array(operator, partition) = store.split("/").map(_.toInt)
      (operator, partition, id)
    }.toSeq.sorted
    if (known.nonEmpty) {
      val all = said.putObject("stateUniqueIds")
      known.groupBy(_._1).toSeq.sortBy(_._1).foreach { case (operator, partitions) =>
        val of = all.putArray(operator.toString)
        partitions.foreach { case (_, _, id) => of.addArray.add(id) }
      }
    }
    s"v${if (known.isEmpty) 1 else 2}\n${CheckpointFiles.json.writeValueAsString(said)}"
  }
}
