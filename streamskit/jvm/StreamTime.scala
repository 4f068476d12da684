package org.apache.spark.sql.streamskit

import java.nio.file.{Files, Paths}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.Path
import org.apache.spark.TaskContext
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BinaryExpression, Expression, GenericInternalRow, Nondeterministic}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.types.{DataType, LongType, StructType}
import streamskit.Disk

/** Stream time as Kafka Streams keeps it: of each partition, record by record, in the order of offsets.
  *
  * A struct with `stream_time`, the largest time in the record's partition so far, this one included; a record without a
  * time does not count. The other fields are for Spark's watermark. It is one time for all partitions, and these need not
  * be near each other: what Spark is told of a window is its end plus a shift, `shift` if it starts after the time
  * `after` and `shift_before` if not. `closed` is the time, so shifted, up to which windows had closed in all partitions
  * before this micro-batch (none in the first).
  */
case class StreamTime(left: Expression, right: Expression, folder: String, size: Long, grace: Long)
    extends BinaryExpression with Nondeterministic {

  @transient private var times: PartitionTimes = _

  override def stateful: Boolean = true
  override def nullable: Boolean = left.nullable || right.nullable
  override def dataType: DataType =
    new StructType().add("stream_time", LongType, false).add("after", LongType, false).add("shift", LongType, false)
      .add("shift_before", LongType, false).add("closed", LongType)

  override protected def initializeInternal(partitionIndex: Int): Unit =
    times = new PartitionTimes(folder, size, grace)

  override protected def evalInternal(input: InternalRow): Any = {
    val (partition, timestamp) = (left.eval(input), right.eval(input))
    if (partition == null || timestamp == null) null
    else times.see(partition.asInstanceOf[Int], timestamp.asInstanceOf[Long])
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val kind = classOf[PartitionTimes].getName
    val times = ctx.addMutableState(kind, "partitionTimes", forceInline = true)
    val where = ctx.addReferenceObj("folder", folder, "String")
    ctx.addPartitionInitializationStatement(s"$times = new $kind($where, ${size}L, ${grace}L);")
    nullSafeCodeGen(ctx, ev, (partition, timestamp) => s"${ev.value} = $times.see($partition, $timestamp);")
  }

  override protected def withNewChildrenInternal(partition: Expression, timestamp: Expression): StreamTime =
    copy(left = partition, right = timestamp)
}

/** The stream times of the partitions that one Spark task reads. */
class PartitionTimes(folder: String, size: Long, grace: Long) {
  private val context = TaskContext.get()
  private val batch = Option(context.getLocalProperty("streaming.sql.batchId")).map(_.toLong).getOrElse(
    throw new IllegalStateException("Stream time is kept in the micro-batches of a streaming query only."))
  private val files = new TimeFiles(folder)
  private val before = files.before(batch).map { case (partition, last) => partition -> last.withoutClosed(size, grace) }
  private val closed: java.lang.Long = if (before.isEmpty) null else before.values.map(_.closed(grace)).min

  /** From how far ahead of the others on the windows that a partition begins are shifted back to where those are. */
  private val Ahead = 2 * (size + grace)

  private class Current(var last: TimeFile) {
    private val before = last.shifts.last
    val row = new GenericInternalRow(Array[Any](last.time, last.shifts.head.after, last.shifts.head.by, before.by, closed))
  }
  private val seen = mutable.Map.empty[Int, Current]
  private var current: Current = _

  // Saved before Spark can note that the micro-batch is done, and not if the task failed.
  context.addTaskCompletionListener[Unit] { ended => if (!ended.isFailed() && !ended.isInterrupted()) save() }

  /** Take the next record of a partition; the row returned is changed by the next call. */
  def see(partition: Int, timestamp: Long): InternalRow = {
    if (current == null || current.last.partition != partition)
      current = seen.getOrElseUpdate(partition, new Current(begin(partition, timestamp)))
    if (timestamp > current.last.time) {
      current.last = current.last.copy(time = timestamp)
      current.row.update(0, timestamp)
    }
    current.row
  }

  private def begin(partition: Int, timestamp: Long): TimeFile = before.get(partition) match {
    case None =>
      val first = TimeFile(partition, batch, timestamp, List(Shift(-1, 0)))
      if (closed == null) first else first.copy(shifts = List(Shift(-1, closed - first.closed(grace))))
    case Some(last) if last.time + last.shifts.head.by - closed > Ahead && last.shifts.size == 1 =>
      last.copy(batch = batch, shifts = Shift(last.time, closed - last.time) :: last.shifts)
    case Some(last) => last.copy(batch = batch)
  }

  private def save(): Unit = {
    val now = seen.values.map(_.last.withoutClosed(size, grace))
    files.write(now.filterNot(last => before.get(last.partition).exists(_.copy(batch = batch) == last)))
  }
}

/** By how much windows that start after a time are shifted. */
case class Shift(after: Long, by: Long)

/** What is known of a partition after a micro-batch: its stream time, and the shifts of open windows, latest first.
  *
  * There are two shifts at most: another one has to wait until all windows of the one before the last have closed.
  *
  * It is kept as the name of an empty file, which is there whole or not at all.
  */
case class TimeFile(partition: Int, batch: Long, time: Long, shifts: List[Shift]) {
  def name: String =
    s"${partition}_${batch}_${time}_${shifts.map(shift => s"${shift.after}_${shift.by}").mkString("_")}"

  /** The shifted time that no open window ends by. */
  def closed(grace: Long): Long = shifts.map(shift => math.max(time - grace, shift.after) + shift.by).min

  /** The same without the shifts of which all windows have closed. */
  def withoutClosed(size: Long, grace: Long): TimeFile = {
    val open = shifts.tail.zip(shifts).takeWhile { case (_, next) => next.after + size > time - grace }.map(_._1)
    copy(shifts = shifts.head :: open)
  }
}

object TimeFile {
  def of(name: String): Option[TimeFile] =
    if (!name.matches("""\d+(_-?\d+){4,}""")) None
    else {
      val Array(partition, batch, time, shifts @ _*) = name.split("_").map(_.toLong)
      Some(TimeFile(partition.toInt, batch, time, shifts.grouped(2).map(pair => Shift(pair(0), pair(1))).toList))
    }
}

/** The files with a query's stream times: the last few of each partition. */
class TimeFiles(folder: String) {
  private val Kept = 10
  private val path = new Path(folder)
  private val isOnDisk = Option(path.toUri.getScheme).forall(_ == "file")
  private lazy val system = path.getFileSystem(SparkHadoopUtil.get.conf)
  private var known: Seq[TimeFile] = Nil

  /** What was known of each partition before a micro-batch, which may have been tried before. */
  def before(batch: Long): Map[Int, TimeFile] = {
    known = names().flatMap(TimeFile.of)
    known.filter(_.batch < batch).groupBy(_.partition).map { case (partition, all) => partition -> all.maxBy(_.batch) }
  }

  /** Write some files; they are on the disk when this returns. */
  def write(files: Iterable[TimeFile]): Unit = if (files.nonEmpty) {
    if (isOnDisk && !Files.isDirectory(local)) { Files.createDirectories(local); Disk.sync(local.getParent) }
    files.foreach { file =>
      if (!isOnDisk) system.create(new Path(path, file.name), true).close()
      else if (!Files.exists(local.resolve(file.name))) Files.createFile(local.resolve(file.name))
    }
    if (isOnDisk) Disk.sync(local)
    files.foreach { file =>
      val mine = known.filter(_.partition == file.partition).sortBy(_.batch)
      val wrong = mine.filter(each => each.batch >= file.batch && each != file) // of a try with other records
      (mine.filter(_.batch < file.batch).dropRight(Kept - 1) ++ wrong).foreach(remove)
    }
  }

  /** Write what was known before, as of the micro-batch 0. */
  def writeFirst(files: Iterable[TimeFile]): Unit = write(files.map(_.copy(batch = 0)))

  private def remove(file: TimeFile): Unit =
    if (isOnDisk) Files.deleteIfExists(local.resolve(file.name)) else system.delete(new Path(path, file.name), false)

  private def names(): Seq[String] =
    if (!isOnDisk) if (system.exists(path)) system.listStatus(path).toSeq.map(_.getPath.getName) else Nil
    else if (!Files.isDirectory(local)) Nil
    else Using.resource(Files.list(local))(_.iterator.asScala.map(_.getFileName.toString).toList)

  private def local = Paths.get(path.toUri.getPath)
}
