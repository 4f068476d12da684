package org.apache.spark.sql.streamskit

import java.io.{BufferedInputStream, BufferedOutputStream, ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream, EOFException}
import java.nio.channels.Channels
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{List => JavaList, Map => JavaMap}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.arrow.vector.ipc.ArrowStreamReader
import org.apache.spark.{QueryContext, SparkEnv, SparkException, SparkFiles, TaskContext}
import org.apache.spark.api.python.{PythonException, PythonWorker}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, Generator, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.streaming.{MapState, OutputMode, StatefulProcessor, TimeMode, TimerValues, TTLConfig}
import org.apache.spark.sql.types.{BinaryType, IntegerType, StringType, StructType}
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** How a Python worker is started, and what it runs.
  *
  * @param command what the worker unpacks and runs
  * @param python how Python is started
  * @param variables of its environment
  * @param includes which of the files that Spark has sent to its workers Python is to import from
  */
case class PythonCommand(command: Array[Byte], python: String, variables: Map[String, String], includes: Seq[String])

/** Runs the operators of a task in Python, with its state in Spark's state store.
  *
  * A worker gets the rows and answers each of them: `PythonRows` one by one, in Spark's real-time mode, `PythonBatches`
  * packed by the thousand. What is said on the socket stands in `streamskit/execution/task_worker.py`, at the other end.
  * Spark's own way to Python starts a process for each query that only says which state it has, goes through pandas,
  * and in real-time mode lets no row out before it has enough of them.
  */
abstract class PythonTask(command: PythonCommand) extends StatefulProcessor[Row, Row, Row] {
  @transient private var pages: MapState[Row, Row] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    pages = getHandle.getMapState("pages", Encoders.row(PythonTask.Page), Encoders.row(PythonTask.Data), TTLConfig.NONE)

  protected def begin(task: Row): TaskWorker = new TaskWorker(command, pages, task.getInt(0), this)

  /** Whether the worker gets rows one by one. */
  def isByRow: Boolean

  /** What a row tells the worker. */
  def written(row: Row): Array[Byte]

  /** What the worker says in one result. */
  def read(from: TaskInput): Row
}

/** Gives the worker of a task one row at a time. It stays for a whole batch.
  *
  * The last row of that, made by `EndOfBatch`, has it save its state.
  */
class PythonRows(command: PythonCommand) extends PythonTask(command) {
  @transient private var worker: TaskWorker = _

  override def isByRow: Boolean = true

  /** Spark calls it for each row. */
  override def handleInputRows(task: Row, rows: Iterator[Row], timers: TimerValues): Iterator[Row] = {
    val first = if (worker == null) { worker = begin(task); worker.answer().toSeq } else Nil
    first.iterator ++ rows.flatMap { row =>
      val made = worker.give(row).toSeq
      worker.isSaved = row.getInt(0) == PythonTask.End
      made
    }
  }

  override def written(row: Row): Array[Byte] = {
    val data = new ByteArrayOutputStream
    val to = new TaskOutput(data)
    to.writeInt(row.getInt(0))
    to.put(Option(row.getString(1)).map(_.getBytes(UTF_8)).orNull)
    for (part <- 2 to 6) to.put(row.getAs[Array[Byte]](part))
    to.writeBoolean(!row.isNullAt(7))
    to.writeLong(if (row.isNullAt(7)) 0L else row.getLong(7))
    val headers = row.getAs[collection.Seq[Row]](8)
    to.writeInt(if (headers == null) -1 else headers.size)
    if (headers != null) for (header <- headers) {
      to.put(header.getString(0).getBytes(UTF_8))
      to.put(header.getAs[Array[Byte]](1))
    }
    to.writeInt(row.getInt(9))
    to.writeInt(row.getInt(10))
    to.writeLong(row.getLong(11))
    to.writeInt(row.getInt(12))
    to.flush()
    data.toByteArray
  }

  override def read(from: TaskInput): Row = {
    val port = from.readInt()
    val topic = from.text()
    val parts = Seq.fill(5)(from.bytes())
    val isTimed = from.readBoolean()
    val time = from.readLong()
    val count = from.readInt()
    val headers = if (count < 0) null else Seq.fill(count)(Row(from.text(), from.bytes()))
    val values = Seq[Any](port, topic) ++ parts ++ Seq[Any](if (isTimed) time else null, headers)
    Row.fromSeq(values ++ Seq[Any](from.readInt(), from.readInt(), from.readLong(), from.readInt()))
  }
}

/** Gives the worker of a task the records of a micro-batch, in rows that `PackRecords` made, and gets such rows back. */
class PythonBatches(command: PythonCommand) extends PythonTask(command) {
  override def isByRow: Boolean = false

  /** Spark calls it once for each task that has rows. */
  override def handleInputRows(task: Row, rows: Iterator[Row], timers: TimerValues): Iterator[Row] = {
    val worker = begin(task)
    worker.answer() ++ rows.flatMap(worker.give) ++ worker.finish()
  }

  override def written(row: Row): Array[Byte] = row.getAs[Array[Byte]](1)

  override def read(from: TaskInput): Row = Row(from.bytes())
}

object PythonTask {
  val Page: StructType = new StructType().add("page", StringType)
  val Data: StructType = new StructType().add("data", BinaryType)
  private val Task = new StructType().add("task", IntegerType)
  private val Packed = new StructType().add("records", BinaryType)

  /** What a row's `port` is that says that a batch has ended, as in `row_format.py`. */
  val End = -5

  /** The results of tasks: rows with the columns of those that come in, which `task` brings to their tasks. */
  def byRow(frame: DataFrame, command: Array[Byte], python: String, variables: JavaMap[String, String],
      includes: JavaList[String]): DataFrame =
    run(frame, StructType(frame.schema.map(_.copy(nullable = true))), new PythonRows(of(command, python, variables, includes)))

  /** The results of tasks, packed into the one column `records`; `frame` has the columns that `PackRecords` makes. */
  def byBatch(frame: DataFrame, command: Array[Byte], python: String, variables: JavaMap[String, String],
      includes: JavaList[String]): DataFrame =
    run(frame, Packed, new PythonBatches(of(command, python, variables, includes)))

  private def of(command: Array[Byte], python: String, variables: JavaMap[String, String], includes: JavaList[String]) =
    PythonCommand(command, python, variables.asScala.toMap, includes.asScala.toSeq)

  private def run(frame: DataFrame, results: StructType, processor: PythonTask): DataFrame = {
    implicit val result: Encoder[Row] = Encoders.row(results)
    val grouped = frame.groupBy("task").as[Row, Row](Encoders.row(Task), Encoders.row(frame.schema))
    grouped.transformWithState(processor, TimeMode.None(), OutputMode.Update()).toDF()
  }
}

/** Makes rows of the bytes of an Arrow stream, which holds columns of a schema. */
case class UnpackRecords(child: Expression, elementSchema: StructType)
    extends UnaryExpression with Generator with CodegenFallback {
  override def eval(input: InternalRow): IterableOnce[InternalRow] = {
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("unpack", 0, Long.MaxValue)
    val reader = new ArrowStreamReader(new ByteArrayInputStream(child.eval(input).asInstanceOf[Array[Byte]]), allocator)
    var isOpen = true
    def close(): Unit = if (isOpen) { isOpen = false; reader.close(); allocator.close() }
    TaskContext.get().addTaskCompletionListener[Unit](_ => close())
    val root = reader.getVectorSchemaRoot
    val columns: Array[ColumnVector] = root.getFieldVectors.asScala.map(new ArrowColumnVector(_)).toArray
    val batches = Iterator.continually(reader.loadNextBatch()).takeWhile { isMore => if (!isMore) close(); isMore }
    batches.flatMap(_ => new ColumnarBatch(columns, root.getRowCount).rowIterator().asScala)
  }

  override protected def withNewChildInternal(changed: Expression): UnpackRecords = copy(child = changed)
}

/** Passes rows on, and makes one for each task of which it has seen any when Spark asks for what it has kept back.
  *
  * So the last row of a task is always such a one, however many partitions its rows come from.
  */
case class EndOfBatch(child: Expression) extends UnaryExpression with Generator with CodegenFallback {
  @transient private lazy val columns = child.dataType.asInstanceOf[StructType]
  @transient private lazy val task = columns.fieldIndex("task")
  @transient private lazy val seen = mutable.LinkedHashSet.empty[Int]

  override def elementSchema: StructType = StructType(columns.map(_.copy(nullable = true)))

  override def eval(input: InternalRow): IterableOnce[InternalRow] = {
    val row = child.eval(input).asInstanceOf[InternalRow]
    seen += row.getInt(task)
    Some(row)
  }

  override def terminate(): IterableOnce[InternalRow] = seen.iterator.map { number =>
    val values = Map("port" -> PythonTask.End, "task" -> number, "origin" -> -1, "position" -> Long.MaxValue, "step" -> 0)
    new GenericInternalRow(columns.fieldNames.map(name => values.getOrElse(name, null): Any))
  }

  override protected def withNewChildInternal(changed: Expression): EndOfBatch = copy(child = changed)
}

/** A Python worker that one task of Spark talks to. */
class TaskWorker(command: PythonCommand, pages: MapState[Row, Row], number: Int, task: PythonTask) {
  import command._
  private val Daemon = "streamskit.execution.task_daemon"
  private val Worker = "pyspark.worker"

  private val worker: PythonWorker = SparkEnv.get.createPythonWorker(python, Worker, Daemon, variables, true)._1
  // Spark has it wait for input and output at the same time; here one waits for the other.
  worker.selectionKey.cancel()
  worker.selector.close()
  worker.channel.configureBlocking(true)
  private val out = new TaskOutput(Channels.newOutputStream(worker.channel))
  private val in = new TaskInput(Channels.newInputStream(worker.channel))

  /** Whether all that the rows so far have changed is in the state store. */
  var isSaved = false
  private var isFree = false
  private var isReleased = false
  TaskContext.get().addTaskCompletionListener[Unit] { context =>
    if (isSaved && !isFree) try finish().foreach(_ => ()) catch { case NonFatal(_) => () } // it is not needed any more
    release()
    if (!isSaved && !context.isFailed() && !context.isInterrupted())
      throw new IllegalStateException("A task in Python has ended before its rows: its state is not saved.")
  }
  hello()

  private def hello(): Unit = {
    val context = TaskContext.get()
    out.put(SparkFiles.getRootDirectory().getBytes(UTF_8))
    out.writeInt(includes.size)
    includes.foreach(name => out.put(name.getBytes(UTF_8)))
    out.put(command.command)
    out.writeInt(number)
    out.writeLong(Option(context.getLocalProperty("streaming.sql.batchId")).map(_.toLong).getOrElse(-1L))
    out.writeBoolean(task.isByRow)
    out.writeInt(context.stageId())
    out.writeInt(context.partitionId())
    out.writeInt(context.attemptNumber())
    out.writeLong(context.taskAttemptId())
  }

  /** What comes out for a row. */
  def give(row: Row): Iterator[Row] = {
    out.put(task.written(row))
    answer()
  }

  /** What comes out when there are no more rows. All state is saved then, and the worker is free for another task. */
  def finish(): Iterator[Row] = {
    out.writeInt(-1)
    answer() ++ {
      isSaved = true
      isFree = true
      release()
      Nil
    }
  }

  private def release(): Unit = if (!isReleased) {
    isReleased = true
    if (isFree) SparkEnv.get.releasePythonWorker(python, Worker, Daemon, variables, worker)
    else SparkEnv.get.destroyPythonWorker(python, Worker, Daemon, variables, worker)
  }

  /** What the worker says until it has said all. */
  def answer(): Iterator[Row] = {
    out.flush()
    Iterator.continually(next()).takeWhile(_ != null)
  }

  /** The next result, or null when there are no more. What the worker asks for before it is answered. */
  private def next(): Row = {
    var row: Row = null
    var goesOn = true
    while (goesOn) said() match {
      case 'R' => row = task.read(in); goesOn = false
      case 'L' => out.put(data(pages.getValue(Row(in.text())))); out.flush()
      case 'A' => all(); out.flush()
      case 'S' => pages.updateValue(Row(in.text()), Row(in.bytes()))
      case 'D' => pages.removeKey(Row(in.text()))
      case 'E' => goesOn = false
      case 'F' => throw new PythonException(in.text(), null, None, Map.empty[String, String], Array.empty[QueryContext])
    }
    row
  }

  private def said(): Char =
    try in.readByte().toChar
    catch {
      case died: EOFException => throw new SparkException("Python worker exited unexpectedly (crashed)", died)
    }

  private def all(): Unit = {
    pages.iterator().foreach { case (page, kept) =>
      out.put(page.getString(0).getBytes(UTF_8))
      out.put(data(kept))
    }
    out.writeInt(-1)
  }

  private def data(kept: Row): Array[Byte] = if (kept == null) null else kept.getAs[Array[Byte]](0)
}

/** What a worker is told: bytes have their length before them, and -1 stands for null. */
class TaskOutput(to: java.io.OutputStream) extends DataOutputStream(new BufferedOutputStream(to)) {
  def put(data: Array[Byte]): Unit =
    if (data == null) writeInt(-1)
    else {
      writeInt(data.length)
      write(data)
    }
}

/** What a worker says. */
class TaskInput(from: java.io.InputStream) extends DataInputStream(new BufferedInputStream(from)) {
  def bytes(): Array[Byte] = {
    val length = readInt()
    if (length < 0) null else readNBytes(length)
  }

  def text(): String = Option(bytes()).map(new String(_, UTF_8)).orNull
}
