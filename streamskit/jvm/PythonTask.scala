package org.apache.spark.sql.streamskit

import java.io.{BufferedInputStream, BufferedOutputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream, EOFException}
import java.nio.channels.Channels
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Map => JavaMap}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.{QueryContext, SparkEnv, SparkException, TaskContext}
import org.apache.spark.api.python.{PythonException, PythonWorker}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, Generator, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.streaming.{MapState, OutputMode, StatefulProcessor, TimeMode, TimerValues, TTLConfig}
import org.apache.spark.sql.types.StructType

/** Runs the operators of a task in Python, in Spark's real-time mode: a worker gets one row at a time and answers it.
  *
  * Spark's own way to Python gathers rows, and lets none out before it has enough of them. The worker stays for a whole
  * batch; the last row of that, made by `EndOfBatch`, has it save its state. What is said on the socket stands in
  * `streamskit/execution/row_worker.py`, at the other end.
  *
  * @param command what the worker runs, as it unpacks it
  * @param python how Python is started
  * @param variables of its environment
  */
class PythonTask(command: Array[Byte], python: String, variables: Map[String, String])
    extends StatefulProcessor[Int, Row, Row] {
  @transient private var pages: MapState[String, Array[Byte]] = _
  @transient private var worker: RowWorker = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    pages = getHandle.getMapState("pages", Encoders.STRING, Encoders.BINARY, TTLConfig.NONE)

  /** Spark calls it for each row. */
  override def handleInputRows(task: Int, rows: Iterator[Row], timers: TimerValues): Iterator[Row] = {
    val first = if (worker == null) begin(task) else Nil
    first.iterator ++ rows.flatMap(worker.give)
  }

  private def begin(task: Int): Seq[Row] = {
    worker = new RowWorker(python, variables, pages)
    worker.begin(command, task)
  }
}

object PythonTask {

  /** The results of tasks: rows with the columns of those that come in, which `task` brings to their tasks. */
  def run(frame: DataFrame, command: Array[Byte], python: String, variables: JavaMap[String, String]): DataFrame = {
    implicit val row: Encoder[Row] = Encoders.row(StructType(frame.schema.map(_.copy(nullable = true))))
    implicit val task: Encoder[Int] = Encoders.scalaInt
    val processor = new PythonTask(command, python, variables.asScala.toMap)
    frame.groupBy("task").as[Int, Row].transformWithState(processor, TimeMode.None(), OutputMode.Update()).toDF()
  }

  /** What a row's `port` is that says that a batch has ended, as in `row_format.py`. */
  val End = -5
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
class RowWorker(python: String, variables: Map[String, String], pages: MapState[String, Array[Byte]]) {
  private val Daemon = "streamskit.execution.row_daemon"
  private val Worker = "pyspark.worker"

  private val worker: PythonWorker = SparkEnv.get.createPythonWorker(python, Worker, Daemon, variables, true)._1
  // Spark has it wait for input and output at the same time; here one waits for the other.
  worker.selectionKey.cancel()
  worker.selector.close()
  worker.channel.configureBlocking(true)
  private val out = new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(worker.channel)))
  private val in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(worker.channel)))
  private var isSaved = false
  private var isFree = false
  TaskContext.get().addTaskCompletionListener[Unit] { task =>
    if (isSaved) end()
    if (isFree) SparkEnv.get.releasePythonWorker(python, Worker, Daemon, variables, worker)
    else SparkEnv.get.destroyPythonWorker(python, Worker, Daemon, variables, worker)
    if (!isSaved && !task.isFailed() && !task.isInterrupted())
      throw new IllegalStateException("A task in real-time mode has ended without a row that says so: its state is not saved.")
  }

  /** The rows that come out before there are any. */
  def begin(command: Array[Byte], task: Int): Seq[Row] = {
    put(out, command)
    out.writeInt(task)
    answer()
  }

  /** The rows that the operators make of one. Behind one that ends a batch, all state is saved. */
  def give(row: Row): Seq[Row] = {
    val data = new ByteArrayOutputStream
    write(new DataOutputStream(data), row)
    put(out, data.toByteArray)
    val rows = answer()
    isSaved = row.getInt(0) == PythonTask.End
    rows
  }

  /** Has the worker be free for another task. */
  private def end(): Unit =
    try {
      out.writeInt(-1)
      answer()
      isFree = true
    } catch { case NonFatal(_) => () } // it is not needed any more

  private def answer(): Seq[Row] = {
    out.flush()
    val rows = mutable.ArrayBuffer.empty[Row]
    var goesOn = true
    while (goesOn) said() match {
      case 'R' => rows += read()
      case 'L' => put(out, pages.getValue(text())); out.flush()
      case 'A' => all(); out.flush()
      case 'S' => pages.updateValue(text(), bytes())
      case 'D' => pages.removeKey(text())
      case 'E' => goesOn = false
      case 'F' => throw new PythonException(text(), null, None, Map.empty[String, String], Array.empty[QueryContext])
    }
    rows.toSeq
  }

  private def said(): Char =
    try in.readByte().toChar
    catch {
      case died: EOFException => throw new SparkException("Python worker exited unexpectedly (crashed)", died)
    }

  private def all(): Unit = {
    pages.iterator().foreach { case (page, data) =>
      put(out, page.getBytes(UTF_8))
      put(out, data)
    }
    out.writeInt(-1)
  }

  // ---- rows: as `row_worker.py` reads and writes them

  private def write(to: DataOutputStream, row: Row): Unit = {
    to.writeInt(row.getInt(0))
    put(to, Option(row.getString(1)).map(_.getBytes(UTF_8)).orNull)
    for (part <- 2 to 6) put(to, row.getAs[Array[Byte]](part))
    to.writeBoolean(!row.isNullAt(7))
    to.writeLong(if (row.isNullAt(7)) 0L else row.getLong(7))
    val headers = row.getAs[collection.Seq[Row]](8)
    to.writeInt(if (headers == null) -1 else headers.size)
    if (headers != null) for (header <- headers) {
      put(to, header.getString(0).getBytes(UTF_8))
      put(to, header.getAs[Array[Byte]](1))
    }
    to.writeInt(row.getInt(9))
    to.writeInt(row.getInt(10))
    to.writeLong(row.getLong(11))
    to.writeInt(row.getInt(12))
  }

  private def read(): Row = {
    val port = in.readInt()
    val topic = text()
    val parts = Seq.fill(5)(bytes())
    val isTimed = in.readBoolean()
    val time = in.readLong()
    val count = in.readInt()
    val headers = if (count < 0) null else Seq.fill(count)(Row(text(), bytes()))
    val values = Seq[Any](port, topic) ++ parts ++ Seq[Any](if (isTimed) time else null, headers)
    Row.fromSeq(values ++ Seq[Any](in.readInt(), in.readInt(), in.readLong(), in.readInt()))
  }

  private def put(to: DataOutputStream, data: Array[Byte]): Unit =
    if (data == null) to.writeInt(-1)
    else {
      to.writeInt(data.length)
      to.write(data)
    }

  private def bytes(): Array[Byte] = {
    val length = in.readInt()
    if (length < 0) null else in.readNBytes(length)
  }

  private def text(): String = Option(bytes()).map(new String(_, UTF_8)).orNull
}
