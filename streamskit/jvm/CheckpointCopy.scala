package org.apache.spark.sql.streamskit

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Arrays, Base64, Map => JavaMap}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.kafka.clients.producer.ProducerRecord

/** Keeps a copy of a query's checkpoint on a compacted topic, so that the folder can be made anew from it.
  *
  * A micro-batch adds the rows of state that it has changed, each under its own key, and last a position: up to where it
  * has read, and the stream times. They are one transaction; whoever reads what is committed finds the state that belongs
  * to the last position. Records before the offset `from` of that position are of an earlier copy.
  *
  * @param servers the settings of a consumer as text, or the address of the brokers alone
  * @param folder the checkpoint
  * @param topic the topic, of one partition
  * @param about what the application wants to find beside each position, as JSON
  */
class CheckpointCopy(servers: String, folder: String, topic: String, about: String) {
  private val files = new CheckpointFiles(folder)
  private lazy val query = files.query
  private lazy val stores = files.stores
  private lazy val inPython = files.inPython
  private var hasNotes = false
  private lazy val parts = new RowParts(
    CheckpointCopy.position(servers, topic).flatMap(last => Option(last.get("parts"))).map(_.toString).orNull)

  /** The micro-batch up to which the topic has a copy that was begun by this object, and the offset at which it begins. */
  private var last: Option[(Long, Long)] = None

  /** Have the topic hold what the checkpoint has after a micro-batch; return the offset at which that copy begins.
    *
    * What is missing is added; where that cannot be, all is written once more.
    */
  def bring(transactions: Transactions, batch: Long): Long = {
    val known = last.orElse(inTopic).filter(_._1 <= batch)
    val missing = known.toSeq.flatMap { case (copied, _) => (copied + 1) to batch }
    val from = known.map(_._2).filter(_ => missing.forall(files.hasChanges(stores, _))) match {
      case Some(begins) => missing.foreach(each => sendChanges(transactions, each, files.offsets(each))); begins
      case None =>
        val begins = Transactions.end(servers, topic)
        if (batch >= 0) {
          val said = CheckpointFiles.said(files.offsets(batch))
          stores.foreach(files.foreachRow(_, batch, said)(send(transactions, _)))
        }
        begins
    }
    sendPosition(transactions, batch, from, if (batch >= 0) files.offsets(batch) else "")
    last = Some((batch, from))
    from
  }

  private def inTopic: Option[(Long, Long)] = CheckpointCopy.position(servers, topic)
    .filter(_.get("query").asText == files.query)
    .map(position => (position.get("batch").asLong, position.get("from").asLong))

  /** Add what a micro-batch has done to the copy that begins at `from`. */
  def add(transactions: Transactions, batch: Long, from: Long): Unit = {
    val offsets = files.offsets(batch)
    sendChanges(transactions, batch, offsets)
    sendPosition(transactions, batch, from, offsets)
  }

  private def sendChanges(transactions: Transactions, batch: Long, offsets: String): Unit =
    if (stores.nonEmpty) {
      val said = CheckpointFiles.said(offsets)
      stores.foreach(files.foreachChange(_, batch, said)(send(transactions, _)))
    }

  private def send(transactions: Transactions, row: StateRow): Unit =
    if (!CheckpointCopy.isOfRun(row.key))
      parts.records(CheckpointCopy.name(row), row.value).foreach { each =>
        val record = new ProducerRecord(topic, each.key, each.value)
        if (each.parts > 1) record.headers.add("parts", each.parts.toString.getBytes)
        transactions.send(record)
      }

  private def sendPosition(transactions: Transactions, batch: Long, from: Long, offsets: String): Unit = {
    if (batch >= 0 && !hasNotes) {
      files.notes.foreach { case (file, note) =>
        transactions.send(new ProducerRecord(topic, CheckpointCopy.noteName(file), note))
      }
      hasNotes = true
    }
    val position = CheckpointFiles.json.createObjectNode
    position.put("query", if (batch >= 0) query else files.query).put("batch", batch).put("from", from)
    position.set[JsonNode]("about", CheckpointFiles.json.readTree(about))
    if (batch >= 0) position.put("offsets", offsets).put("has ids", files.hasIds)
    files.streamTimes(batch).foreach(position.withArray("stream times").add(_))
    (if (batch >= 0) stores else Nil).foreach(position.withArray("stores").add(_))
    (if (batch >= 0) inPython else Nil).foreach(position.withArray("in python").add(_))
    if (parts.nonEmpty) position.set[JsonNode]("parts", parts.told)
    transactions.send(new ProducerRecord(topic, CheckpointCopy.Position, CheckpointFiles.json.writeValueAsBytes(position)))
  }
}

/** A record of a copy: a row that fits into it, or the first part of one in so many parts, or another part. */
case class CopyRecord(key: Array[Byte], value: Array[Byte], parts: Int)

/** Cuts rows that do not fit into one record, and knows how many parts a topic has of each: none is to stay for ever.
  *
  * @param known what `told` said when the topic was written last; null if nothing was said
  */
class RowParts(known: String) {
  private val counts = mutable.Map.empty[Seq[Byte], Int]
  Option(known).map(CheckpointFiles.json.readTree(_)).foreach(_.properties.asScala.foreach { each =>
    counts(Base64.getDecoder.decode(each.getKey).toSeq) = each.getValue.asInt
  })

  /** The records of a row: its further parts, then the first one, then that older parts are gone. */
  def records(name: Array[Byte], value: Array[Byte]): Seq[CopyRecord] = {
    val count = if (value == null) 1 else math.max(1, (value.length - 1) / CheckpointCopy.Part + 1)
    val before = if (count == 1 && counts.isEmpty) 1 else counts.getOrElse(name.toSeq, 1)
    if (count > 1) counts(name.toSeq) = count else if (before > 1) counts -= name.toSeq
    def part(number: Int) = if (count == 1) value else Arrays.copyOfRange(
      value, number * CheckpointCopy.Part, math.min(value.length, (number + 1) * CheckpointCopy.Part))
    (1 until count).map(number => CopyRecord(CheckpointCopy.partName(number, name), part(number), 1)) ++
      Seq(CopyRecord(name, part(0), count)) ++
      (count until before).map(number => CopyRecord(CheckpointCopy.partName(number, name), null, 1))
  }

  def nonEmpty: Boolean = counts.nonEmpty

  /** How many parts each row has that has several, for the next run. */
  def told: JsonNode = {
    val said = CheckpointFiles.json.createObjectNode
    counts.foreach { case (name, count) => said.put(Base64.getEncoder.encodeToString(name.toArray), count) }
    said
  }
}

/** Puts rows together again from the records of a copy, in their order. */
class PartedRows {
  private val parts = mutable.Map.empty[Seq[Byte], Array[Byte]]

  /** Take a part of a row. */
  def take(key: Array[Byte], value: Array[Byte]): Unit =
    if (value == null) parts -= key.toSeq else parts(key.toSeq) = value

  /** The value of a row of which the first part is here; None where others are missing.
    *
    * Compaction has removed them then, as it does once newer ones are there, and the row comes once more, behind these.
    */
  def whole(name: Array[Byte], first: Array[Byte], count: Int): Option[Array[Byte]] = {
    val others = (1 until count).map(number => parts.remove(CheckpointCopy.partName(number, name).toSeq))
    if (others.exists(_.isEmpty)) None else Some(Array.concat(first +: others.flatten: _*))
  }
}

object CheckpointCopy {
  /** The key of a position. */
  val Position: Array[Byte] = "position".getBytes(UTF_8)

  /** How many bytes of a value go into one record: every broker takes these. */
  val Part: Int = 512 * 1024

  private val Row = 'r'.toByte
  private val RowPart = 'c'.toByte
  private val Note = "note "
  private val Fields = "/fields".getBytes(UTF_8)

  def name(row: StateRow): Array[Byte] =
    Array(Row) ++ row.store.getBytes(UTF_8) ++ Array(0.toByte) ++ row.key

  def partName(number: Int, name: Array[Byte]): Array[Byte] =
    Array(RowPart) ++ ByteBuffer.allocate(4).putInt(number).array ++ name

  /** The name of the row that a part belongs to, and which part it is. */
  def partOf(key: Array[Byte]): Option[(Array[Byte], Int)] =
    if (key.headOption.contains(RowPart)) Some((key.drop(5), ByteBuffer.wrap(key, 1, 4).getInt)) else None

  /** The row with a name; None if that is of something else. */
  def row(name: Array[Byte], value: Array[Byte]): Option[StateRow] =
    if (!name.headOption.contains(Row)) None
    else {
      val end = name.indexOf(0.toByte)
      Some(StateRow(new String(name, 1, end - 1, UTF_8), name.drop(end + 1), value))
    }

  def noteName(file: String): Array[Byte] = (Note + file).getBytes(UTF_8)

  /** The file in the checkpoint that a note is; only where Spark keeps such notes. */
  def noteOf(key: Array[Byte]): Option[String] =
    Some(new String(key, UTF_8)).filter(_.startsWith(Note)).map(_.drop(Note.length))
      .filter(_.matches("""state/\d+/(_metadata/v2/0|_stateSchema/default/[\w-]+)"""))

  /** Whether a row holds the fields and punctuations of processors, which a new start forgets anyhow.
    *
    * Python unpickles objects of any class from them: they must never come from a topic.
    */
  def isOfRun(key: Array[Byte]): Boolean = {
    var end = key.length
    while (end > 0 && key(end - 1) == 0) end -= 1
    end >= Fields.length && Arrays.equals(key, end - Fields.length, end, Fields, 0, Fields.length)
  }

  /** The last position in a topic. */
  def position(servers: String, topic: String): Option[JsonNode] =
    Transactions.lastRecord(servers, topic, record => Arrays.equals(record.key, Position))
      .map(record => CheckpointFiles.json.readTree(record.value))

  /** The last position in a topic as JSON; null if there is none. */
  def lastPosition(servers: String, topic: String): String = position(servers, topic).map(_.toString).orNull
}

/** Copies a checkpoint beside its query, which does not wait for that. */
class CheckpointCopier(options: JavaMap[String, String], folder: String, topic: String) extends AutoCloseable {
  private val files = new CheckpointFiles(folder)
  private var transactions: Transactions = _
  private var copy: CheckpointCopy = _
  private var copied = (Long.MinValue, "")
  private var readTo = ""

  /** Copy what the query has done so far; return up to where it had read then, as it stands in Spark's log. */
  def catchUp(about: String): String = {
    val done = files.lastDone
    if (copied != (done, about)) {
      if (transactions == null) transactions = new Transactions(options, topic)
      if (copy == null || copied._2 != about)
        copy = new CheckpointCopy(Transactions.reader(options), folder, topic, about)
      try {
        transactions.begin()
        copy.bring(transactions, done)
        transactions.commit()
        copied = (done, about)
        readTo = if (done >= 0) files.offsets(done) else ""
      } catch { case failure: Throwable => close(); throw failure }
    }
    readTo
  }

  override def close(): Unit = {
    copy = null
    if (transactions != null) { transactions.close(); transactions = null }
  }
}
