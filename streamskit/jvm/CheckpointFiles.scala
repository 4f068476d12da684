package org.apache.spark.sql.streamskit

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.{SparkConf, SparkEnv}
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state.{RecordType, RocksDB, RocksDBConf, StateStoreChangelogReaderFactory, StateStoreConf}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.Utils

/** A row of state with the bytes that Spark's store has for it; `value` is null where the row was deleted.
  *
  * @param store which store of the query: the numbers of operator and partition, as "0/3"
  */
case class StateRow(store: String, key: Array[Byte], value: Array[Byte])

/** What a query's checkpoint says of a micro-batch, and the rows of its state. */
class CheckpointFiles(val folder: String) {
  private val configuration = {
    val found = new Configuration(SparkHadoopUtil.get.conf)
    found.set(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key, "streamskit.LocalCheckpoints")
    found
  }
  private val root = new Path(folder)
  private lazy val manager = CheckpointFileManager.create(root, configuration)

  /** The id that Spark has given to the query; "" before its first start. */
  def query: String = {
    val file = new Path(root, "metadata")
    if (manager.exists(file)) CheckpointFiles.json.readTree(text(file)).get("id").asText else ""
  }

  /** The last micro-batch that is done; -1 before the first. */
  def lastDone: Long = names(new Path(root, "commits")).filter(_.forall(_.isDigit)).map(_.toLong).maxOption.getOrElse(-1)

  /** What a micro-batch reads up to, with Spark's settings for it, as it stands in Spark's log. */
  def offsets(batch: Long): String = text(new Path(root, s"offsets/$batch"))

  /** The stores of the query. */
  def stores: Seq[String] = for {
    operator <- names(state).filter(_.forall(_.isDigit)).sortBy(_.toInt)
    partition <- names(new Path(state, operator)).filter(_.forall(_.isDigit)).sortBy(_.toInt)
  } yield s"$operator/$partition"

  /** The operators that run in Python: their stores have column families. */
  def inPython: Set[String] =
    names(state).filter(operator => manager.exists(new Path(state, s"$operator/_stateSchema"))).toSet

  /** What Spark has noted of the state of operators in Python: files by their names in the checkpoint. */
  def notes: Map[String, Array[Byte]] = inPython.flatMap { operator =>
    val metadata = new Path(state, s"$operator/_metadata/v2")
    val last = names(metadata).filter(_.forall(_.isDigit)).maxBy(_.toLong)
    val schemas = new Path(state, s"$operator/_stateSchema/default")
    Seq(s"state/$operator/_metadata/v2/0" -> bytes(new Path(metadata, last))) ++
      names(schemas).filter(!_.startsWith(".")).map(name =>
        s"state/$operator/_stateSchema/default/$name" -> bytes(new Path(schemas, name)))
  }.toMap

  /** Whether the names of files of state have ids beside their versions, by which Spark tells tries of a batch apart: so
    * it is where the query has run in real-time mode.
    */
  lazy val hasIds: Boolean = lastDone >= 0 && commit(lastDone).head != "v1"

  private def commit(batch: Long): Seq[String] = text(new Path(root, s"commits/$batch")).split("\n").toSeq

  private def idOf(store: String, batch: Long): Option[String] =
    if (!hasIds) None
    else {
      val Array(operator, partition) = store.split("/")
      val ids = CheckpointFiles.json.readTree(commit(batch)(1)).get("stateUniqueIds")
      Some(ids.get(operator).get(partition.toInt).get(0).asText)
    }

  private def changelog(store: String, batch: Long): Path =
    new Path(state, s"$store/${batch + 1}${idOf(store, batch).fold("")(id => s"_$id")}.changelog")

  /** Whether each store still says what a micro-batch has changed in it. */
  def hasChanges(stores: Seq[String], batch: Long): Boolean =
    stores.forall(store => manager.exists(changelog(store, batch)))

  /** What a micro-batch has changed in a store. */
  def foreachChange(store: String, batch: Long, said: JsonNode)(take: StateRow => Unit): Unit = {
    val file = changelog(store, batch)
    val spark = Option(SparkEnv.get).map(_.conf).getOrElse(new SparkConf)
    val codec = CompressionCodec.createCodec(spark, CheckpointFiles.setting(said, SQLConf.STATE_STORE_COMPRESSION_CODEC.key))
    val reader = new StateStoreChangelogReaderFactory(manager, file, codec).constructChangelogReader()
    try reader.foreach {
      case (RecordType.PUT_RECORD, key, value) => take(StateRow(store, key, value))
      case (RecordType.DELETE_RECORD, key, _) => take(StateRow(store, key, null))
      case (kind, _, _) => throw new UnsupportedOperationException(s"$file has a change of a kind that is not known: $kind")
    } finally reader.closeIfNeeded()
  }

  /** All rows that a store had after a micro-batch. */
  def foreachRow(store: String, batch: Long, said: JsonNode)(take: StateRow => Unit): Unit =
    CheckpointFiles.using(opened(store, inPython(store.takeWhile(_ != '/')), said, hasIds)) { rows =>
      rows.load(batch + 1, idOf(store, batch), true, false)
      try rows.families.foreach { case (family, prefix) =>
        rows.in(family).foreach(row => take(StateRow(store, prefix ++ row.key, row.value.clone)))
      } finally rows.rollback()
    }

  /** A store, to be loaded. */
  def opened(store: String, inPython: Boolean, said: JsonNode, hasIds: Boolean): OpenedStore = {
    val settings = new SQLConf
    said.get("conf").properties.asScala.foreach(each => settings.setConfString(each.getKey, each.getValue.asText))
    settings.setConfString("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    val conf = RocksDBConf(new StateStoreConf(settings))
    new OpenedStore(new Path(state, store).toString, conf, configuration, inPython, hasIds)
  }

  /** The stream times after a micro-batch, as they are written in names of files: the latest of each partition. */
  def streamTimes(batch: Long): Seq[String] =
    names(new Path(root, "stream-time")).flatMap(TimeFile.of).filter(_.batch <= batch)
      .groupBy(_.partition).values.map(_.maxBy(_.batch).name).toSeq

  def write(name: String, content: Array[Byte]): Unit = {
    val file = new Path(root, name)
    manager.mkdirs(file.getParent)
    val stream = manager.createAtomic(file, true)
    try { stream.write(content); stream.close() }
    catch { case failure: Throwable => stream.cancel(); throw failure }
  }

  private def state = new Path(root, "state")
  private def bytes(file: Path) = Using.resource(manager.open(file))(_.readAllBytes)
  private def text(file: Path) = new String(bytes(file), UTF_8)
  private def names(folder: Path): Seq[String] =
    if (manager.exists(folder)) manager.list(folder).toSeq.map(_.getPath.getName) else Nil
}

object CheckpointFiles {
  val json = new ObjectMapper

  /** What the second line of a log of offsets says: the watermark, and the settings that the query has kept. */
  def said(offsets: String): JsonNode = json.readTree(offsets.split("\n")(1))

  def setting(said: JsonNode, name: String): String = said.get("conf").get(name).asText

  def using[Result](store: OpenedStore)(use: OpenedStore => Result): Result = try use(store) finally store.close()
}

/** A state store of Spark's without an encoder: rows go in and out as bytes.
  *
  * A store of an operator in Python has two column families. In Spark's files a key begins with the number of its own.
  */
class OpenedStore(
    folder: String, settings: RocksDBConf, configuration: Configuration, inPython: Boolean, hasIds: Boolean)
    extends RocksDB(folder, settings, Utils.createTempDir(), configuration, "streamskit", inPython, hasIds) {

  /** The column families, each with what its keys begin with. */
  def families: Seq[(String, Array[Byte])] =
    if (!inPython) Seq(("default", Array.emptyByteArray))
    else Seq("default", "pages").map { family =>
      val prefix = new Array[Byte](2)
      Platform.putShort(prefix, Platform.BYTE_ARRAY_OFFSET, createColFamilyIfAbsent(family, false))
      (family, prefix)
    }

  /** The rows of a column family. */
  def in(family: String) = prefixScan(Array.emptyByteArray, family)

  /** Change a row whose key is as Spark's files have it. */
  def change(row: StateRow): Unit = {
    val (family, key) =
      if (!inPython) ("default", row.key)
      else (known(Platform.getShort(row.key, Platform.BYTE_ARRAY_OFFSET)), row.key.drop(2))
    if (row.value == null) remove(key, family) else put(key, row.value, family)
  }

  private lazy val known = families.map { case (family, prefix) =>
    Platform.getShort(prefix, Platform.BYTE_ARRAY_OFFSET) -> family
  }.toMap
}
