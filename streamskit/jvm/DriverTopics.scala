package org.apache.spark.sql.streamskit

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Map => JavaMap, Set => JavaSet}
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, LeafExpression, Nondeterministic, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.connector.catalog.{SupportsRead, SupportsWrite, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

/** The topics of one query of a test driver, in the memory of this process.
  *
  * The query runs in Spark's real-time mode with one task that does everything: a record is processed whole when the task
  * asks for the next one. Nothing is planned for a record then. A batch lasts until no record has come for a while, or
  * too many others are open.
  */
class DriverTopics {
  private val waiting = mutable.Queue.empty[InternalRow]
  private var made = new ByteArrayOutputStream
  private var out = new TaskOutput(made)
  private val dropped = mutable.LinkedHashMap.empty[String, Long]
  private val quotes = mutable.LinkedHashMap.empty[String, String]
  private var isDone = false // all that was given is processed
  private var isIdle = false // a task waits for a record
  private var isEnding = false
  private var hasTask = false
  private var hasFailed = false
  private var lastUsed = 0L
  private var taken = 0L

  /** What a query has made of records, and what it has dropped by then; null if it has ended. */
  def process(records: Array[Byte], query: StreamingQuery): Array[Byte] = {
    DriverTopics.admit(this)
    give(DriverTopics.read(records))
    val begun = System.nanoTime
    while (!awaitDone() && query.isActive)
      if (System.nanoTime - begun > DriverTopics.Starting * 1000000L) DriverTopics.yieldTo(this)
    if (awaitDone()) answer() else { DriverTopics.leave(this); null }
  }

  /** Have the batch end that is open, if any, and say whether all its state could be kept. */
  def finish(query: StreamingQuery): Boolean = {
    end()
    val deadline = System.nanoTime + DriverTopics.LongestEnd * 1000000L
    def goesOn = query.isActive && System.nanoTime < deadline
    while (isRunning && goesOn) synchronized(wait(DriverTopics.Look))
    val failed = synchronized(hasFailed)
    while (failed && goesOn) Thread.sleep(1) // the query is about to say why
    !failed
  }

  private def give(records: Seq[InternalRow]): Unit = synchronized {
    waiting ++= records
    isDone = false
    notifyAll()
  }

  private def awaitDone(): Boolean = synchronized {
    if (!isDone) wait(DriverTopics.Look)
    lastUsed = System.nanoTime
    isDone
  }

  private def answer(): Array[Byte] = synchronized {
    out.writeBoolean(false)
    out.writeInt(dropped.size)
    for ((name, count) <- dropped) { out.put(name.getBytes(UTF_8)); out.writeLong(count) }
    out.writeInt(quotes.size)
    for ((name, quote) <- quotes) { out.put(name.getBytes(UTF_8)); out.put(quote.getBytes(UTF_8)) }
    quotes.clear()
    out.flush()
    val all = made.toByteArray
    made = new ByteArrayOutputStream
    out = new TaskOutput(made)
    all
  }

  private def isRunning: Boolean = synchronized(hasTask)
  private[streamskit] def idleSince: Option[Long] = synchronized { if (isIdle) Some(lastUsed) else None }

  /** Have the batch end, if no record is in it. */
  private[streamskit] def end(): Unit = synchronized { isEnding = true; notifyAll() }

  /** Wait until there is something for a batch to do. */
  private[streamskit] def awaitFirst(): Unit = synchronized { while (waiting.isEmpty) wait() }

  /** The next record; none if the batch is to end. */
  private[streamskit] def next(): Option[InternalRow] = synchronized {
    if (waiting.isEmpty) {
      isDone = true
      isIdle = true
      notifyAll()
      val deadline = System.nanoTime + DriverTopics.Patience * 1000000L
      def left = (deadline - System.nanoTime) / 1000000L
      while (waiting.isEmpty && !isEnding && left > 0) wait(left)
    }
    isIdle = false
    if (waiting.isEmpty) None else { taken += 1; Some(waiting.dequeue()) }
  }

  private[streamskit] def begin(): Unit = { DriverTopics.enter(this); synchronized { hasTask = true; isEnding = false } }
  private[streamskit] def ended(failed: Boolean): Unit = {
    synchronized { hasTask = false; hasFailed = failed }
    DriverTopics.leave(this)
  }
  private[streamskit] def offset: Long = synchronized(taken)

  private[streamskit] def drop(name: String, count: Long): Unit =
    synchronized { dropped(name) = dropped.getOrElse(name, 0L) + count }

  private[streamskit] def quote(name: String, said: String): Unit = synchronized(quotes(name) = said)

  private[streamskit] def write(row: InternalRow, at: Columns): Unit = synchronized {
    out.writeBoolean(true)
    out.put(row.getUTF8String(at.topic).getBytes)
    out.put(if (row.isNullAt(at.key)) null else row.getBinary(at.key))
    out.put(if (row.isNullAt(at.value)) null else row.getBinary(at.value))
    out.writeInt(if (at.partition < 0 || row.isNullAt(at.partition)) -1 else row.getInt(at.partition))
    out.writeLong(row.getLong(at.timestamp))
    val headers = if (row.isNullAt(at.headers)) DriverTopics.NoHeaders else row.getArray(at.headers)
    out.writeInt(headers.numElements)
    for (number <- 0 until headers.numElements) {
      val header = headers.getStruct(number, 2)
      out.put(header.getUTF8String(0).getBytes)
      out.put(if (header.isNullAt(1)) null else header.getBinary(1))
    }
  }
}

/** Where the columns of a row to write stand; -1 for one that is not there. */
case class Columns(topic: Int, key: Int, value: Int, timestamp: Int, headers: Int, partition: Int)

object DriverTopics {
  // In milliseconds: how often a wait looks around; for how long an open batch waits for a record; how long a batch may
  // take to end, and to begin before others make room.
  private val Look = 20L
  private val Patience = 2000L
  private val LongestEnd = 10000L
  private val Starting = 3000L
  private val MostOpen = 16 // batches
  private[streamskit] val Timestamp = 5
  private val NoHeaders = new GenericArrayData(Array.empty[Any])
  private val every = new ConcurrentHashMap[String, DriverTopics]
  private val running = mutable.LinkedHashSet.empty[DriverTopics]

  def open(id: String): DriverTopics = { val topics = new DriverTopics; every.put(id, topics); topics }
  def close(id: String): Unit = Option(every.remove(id)).foreach(leave)
  def of(id: String): DriverTopics = every.get(id)

  /** Wait until one more batch may be open, and open it; one that is idle makes room. */
  private def admit(topics: DriverTopics): Unit =
    while (!entered(topics)) {
      endOne(others(topics))
      running.synchronized(running.wait(Look))
    }

  private def entered(topics: DriverTopics): Boolean = running.synchronized {
    if (running.size < MostOpen) enter(topics)
    running.contains(topics)
  }

  /** Each open batch has a slot beside those of the cores: its task does nothing but wait, most of the time.
    *
    * Otherwise the queries of two drivers, or of one with many sub-topologies, would have to begin and end a batch for
    * each record on a small machine, and an application beside them would wait.
    */
  private[streamskit] def enter(topics: DriverTopics): Unit = running.synchronized {
    running += topics
    ExtraSlots.take(topics, 1)
  }

  private[streamskit] def leave(topics: DriverTopics): Unit = running.synchronized {
    running -= topics
    ExtraSlots.giveBack(topics)
    running.notifyAll()
  }

  /** Have another query's batch end, where this one waits: something else keeps all slots of Spark's busy. */
  private def yieldTo(topics: DriverTopics): Unit = if (!topics.isRunning) endOne(others(topics))

  private def others(topics: DriverTopics): Seq[DriverTopics] = running.synchronized(running.toSeq).filter(_ ne topics)

  private def endOne(queries: Seq[DriverTopics]): Unit =
    queries.flatMap(each => each.idleSince.map(_ -> each)).sortBy(_._1).headOption.foreach(_._2.end())

  private def read(records: Array[Byte]): Seq[InternalRow] = {
    val from = new TaskInput(new ByteArrayInputStream(records))
    Seq.fill(from.readInt())(record(from))
  }

  private def record(from: TaskInput): InternalRow = {
    val (topic, key, value) = (UTF8String.fromString(from.text()), from.bytes(), from.bytes())
    val (partition, offset, timestamp) = (from.readInt(), from.readLong(), from.readLong())
    val count = from.readInt()
    val headers = Array.fill[Any](count)(new GenericInternalRow(Array[Any](UTF8String.fromString(from.text()), from.bytes())))
    new GenericInternalRow(Array[Any](key, value, topic, partition, offset, timestamp,
      if (count == 0) null else new GenericArrayData(headers)))
  }

  val Header: StructType = new StructType().add("key", StringType).add("value", BinaryType)
  val Record: StructType = new StructType().add("key", BinaryType).add("value", BinaryType).add("topic", StringType)
    .add("partition", IntegerType).add("offset", LongType).add("timestamp", TimestampType).add("headers", ArrayType(Header))
}

/** Tells a test driver how many records were dropped, or what was wrong with one; it lets all rows pass.
  *
  * Spark's own `observe` would say so when the batch ends.
  */
case class DriverTold(child: Expression, id: String) extends UnaryExpression with Nondeterministic with CodegenFallback {
  @transient private lazy val fields = child.dataType.asInstanceOf[StructType].fields
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = false
  override protected def initializeInternal(partitionIndex: Int): Unit = ()

  override protected def evalInternal(input: InternalRow): Any = {
    val told = child.eval(input).asInstanceOf[InternalRow]
    for (number <- fields.indices) if (!told.isNullAt(number)) fields(number).dataType match {
      case StringType => DriverTopics.of(id).quote(fields(number).name, told.getUTF8String(number).toString)
      case _ => if (told.getLong(number) != 0) DriverTopics.of(id).drop(fields(number).name, told.getLong(number))
    }
    true
  }

  override protected def withNewChildInternal(changed: Expression): DriverTold = copy(child = changed)
}

/** The number of the record that a test driver's query has in hand, counted from 1. */
case class DriverPlace(id: String) extends LeafExpression with Nondeterministic with CodegenFallback {
  override def dataType: DataType = LongType
  override def nullable: Boolean = false
  override protected def initializeInternal(partitionIndex: Int): Unit = ()
  override protected def evalInternal(input: InternalRow): Any = DriverTopics.of(id).offset
}

class DriverTopicsFormat extends TableProvider with DataSourceRegister {
  override def shortName(): String = "driver-topics"
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = DriverTopics.Record
  override def getTable(schema: StructType, partitioning: Array[Transform], properties: JavaMap[String, String]): Table =
    DriverTopicsTable(properties.get("id"))
}

case class DriverTopicsTable(driver: String) extends Table with SupportsRead with SupportsWrite {
  override def name(): String = s"test driver $driver"
  override def schema(): StructType = DriverTopics.Record
  override def capabilities(): JavaSet[TableCapability] =
    Set(TableCapability.MICRO_BATCH_READ, TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA).asJava

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () => new Scan {
    override def readSchema(): StructType = DriverTopics.Record
    override def toMicroBatchStream(checkpoint: String): MicroBatchStream = new DriverStream(driver)
  }

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = new WriteBuilder with SupportsStreamingUpdateAsAppend {
    override def build(): Write = new Write {
      override def toStreaming: StreamingWrite = {
        def at(name: String) = info.schema.fieldNames.indexOf(name)
        new DriverWrite(driver, Columns(at("topic"), at("key"), at("value"), at("timestamp"), at("headers"), at("partition")))
      }
    }
  }
}

case class DriverOffset(taken: Long) extends Offset with PartitionOffset { override def json(): String = taken.toString }
case class DriverPartition(id: String) extends InputPartition

class DriverStream(id: String) extends MicroBatchStream with SupportsRealTimeMode {
  private val topics = DriverTopics.of(id)
  override def initialOffset(): Offset = DriverOffset(0)
  override def latestOffset(): Offset = DriverOffset(topics.offset)
  override def deserializeOffset(json: String): Offset = DriverOffset(json.toLong)
  override def mergeOffsets(offsets: Array[PartitionOffset]): Offset = offsets.head.asInstanceOf[DriverOffset]
  override def planInputPartitions(start: Offset): Array[InputPartition] = Array(DriverPartition(id))
  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = planInputPartitions(start)

  /** The plan is made; the task starts when there is something to do, and no sooner keeps it a slot. */
  override def createReaderFactory(): PartitionReaderFactory = {
    topics.awaitFirst()
    DriverReaders
  }

  override def commit(end: Offset): Unit = ()
  override def stop(): Unit = DriverTopics.leave(topics)
}

object DriverReaders extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new DriverReader(DriverTopics.of(partition.asInstanceOf[DriverPartition].id))
}

class DriverReader(topics: DriverTopics) extends SupportsRealTimeRead[InternalRow] {
  private var current: InternalRow = _
  topics.begin()
  TaskContext.get().addTaskCompletionListener[Unit](context => topics.ended(context.isFailed()))

  override def nextWithTimeout(start: java.lang.Long, timeout: java.lang.Long): RecordStatus = {
    val found = topics.next()
    // Spark's time is in microseconds: a record so late that it has none fails in the query, as any that is wrong.
    found.foreach(row => row.setLong(DriverTopics.Timestamp, Math.multiplyExact(row.getLong(DriverTopics.Timestamp), 1000L)))
    found.foreach(current = _)
    RecordStatus.newStatusWithoutArrivalTime(found.isDefined)
  }

  override def next(): Boolean = throw new UnsupportedOperationException("A test driver reads in real-time mode.")
  override def get(): InternalRow = current
  override def getOffset: PartitionOffset = DriverOffset(topics.offset)
  override def close(): Unit = ()
}

class DriverWrite(id: String, at: Columns) extends StreamingWrite {
  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = DriverWriters(id, at)
  override def commit(epoch: Long, messages: Array[WriterCommitMessage]): Unit = ()
  override def abort(epoch: Long, messages: Array[WriterCommitMessage]): Unit = ()
}

case class DriverWriters(id: String, at: Columns) extends StreamingDataWriterFactory {
  override def createWriter(partition: Int, task: Long, epoch: Long): DataWriter[InternalRow] = new DataWriter[InternalRow] {
    private val topics = DriverTopics.of(id)
    override def write(row: InternalRow): Unit = topics.write(row, at)
    override def commit(): WriterCommitMessage = new WriterCommitMessage {}
    override def abort(): Unit = ()
    override def close(): Unit = ()
  }
}
