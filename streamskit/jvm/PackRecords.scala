package org.apache.spark.sql.streamskit

import java.io.ByteArrayOutputStream

import scala.collection.mutable

import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.ArrowStreamWriter
import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, CreateNamedStruct, Expression, GenericInternalRow, Generator, JoinedRow, UnaryExpression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.types.{BinaryType, IntegerType, StructType}
import org.apache.spark.sql.util.ArrowUtils

/** Makes one row of thousands: structs of one task of Kafka Streams, in order, as the bytes of an Arrow stream.
  *
  * Their field `task` says of which. Spark asks a generator for what it has kept back when its input ends.
  */
case class PackRecords(child: Expression) extends UnaryExpression with Generator with CodegenFallback {
  @transient private lazy val columns = child.dataType.asInstanceOf[StructType]
  @transient private lazy val place = columns.fieldIndex("task")
  @transient private lazy val project = UnsafeProjection.create(child)
  // The struct is mostly the row itself, column by column, with constants behind it: then nothing has to be copied.
  @transient private lazy val constants: Option[InternalRow] = child match {
    case struct: CreateNamedStruct =>
      val (own, behind) = struct.valExprs.span(_.isInstanceOf[BoundReference])
      val isRow = own.zipWithIndex.forall { case (column, n) => column.asInstanceOf[BoundReference].ordinal == n }
      if (isRow && behind.forall(_.foldable)) Some(InternalRow.fromSeq(behind.map(_.eval()))) else None
    case _ => None
  }
  @transient private lazy val front = new UnsafeRow(columns.size - constants.fold(0)(_.numFields))
  @transient private lazy val joined = new JoinedRow
  @transient private lazy val open = mutable.LinkedHashMap.empty[Int, OpenPack]

  override def elementSchema: StructType = new StructType().add("task", IntegerType).add("records", BinaryType)

  override def eval(input: InternalRow): IterableOnce[InternalRow] = {
    val (record, bytes) = (input, constants) match {
      case (row: UnsafeRow, Some(behind)) if hasFront(row) =>
        front.pointTo(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
        (joined(front, behind), row.getSizeInBytes)
      case _ =>
        val made = project(input).getStruct(0, columns.size)
        (made, made.getSizeInBytes)
    }
    val task = record.getInt(place)
    val pack = open.getOrElseUpdate(task, new OpenPack(task, columns))
    pack.add(record, bytes)
    if (pack.isFull) Some(pack.take()) else None
  }

  /** Whether the first columns of a row, which may have more, can be read as a row of their own. */
  private def hasFront(row: UnsafeRow): Boolean = row.numFields >= front.numFields &&
    UnsafeRow.calculateBitSetWidthInBytes(row.numFields) == UnsafeRow.calculateBitSetWidthInBytes(front.numFields)

  override def terminate(): IterableOnce[InternalRow] = open.values.iterator.filterNot(_.isEmpty).map(_.take())

  override protected def withNewChildInternal(changed: Expression): PackRecords = copy(child = changed)
}

/** The records of one task that are not handed on yet. */
class OpenPack(task: Int, columns: StructType) {
  private val MostRows = 10000
  private val MostBytes = 8 * 1024 * 1024

  private val root = VectorSchemaRoot.create(
    ArrowUtils.toArrowSchema(columns, "UTC", errorOnDuplicatedFieldNames = true, largeVarTypes = false),
    ArrowUtils.rootAllocator)
  TaskContext.get().addTaskCompletionListener[Unit](_ => root.close())
  private val writer = ArrowWriter.create(root)
  private var rows = 0
  private var bytes = 0L

  def isEmpty: Boolean = rows == 0

  def isFull: Boolean = rows >= MostRows || bytes >= MostBytes

  def add(record: InternalRow, size: Int): Unit = {
    writer.write(record)
    rows += 1
    bytes += size
  }

  /** The row that holds all of them; what is added next begins another one. */
  def take(): InternalRow = {
    writer.finish()
    val data = new ByteArrayOutputStream(bytes.toInt)
    val stream = new ArrowStreamWriter(root, null, data)
    stream.start()
    stream.writeBatch()
    stream.end()
    writer.reset()
    rows = 0
    bytes = 0
    new GenericInternalRow(Array[Any](task, data.toByteArray))
  }
}
