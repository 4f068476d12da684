package org.apache.spark.sql.streamskit

import org.apache.kafka.common.utils.Utils
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, Nondeterministic, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.connector.expressions.{Expressions, SortDirection, SortOrder}
import org.apache.spark.sql.types.{DataType, LongType, StructType}

/** The order in which a sink writes rows: by the columns "time" and "place", where rows have them. */
object WriteOrder {
  private val Columns = Seq("time", "place")

  def of(schema: StructType): Array[SortOrder] =
    Columns.filter(schema.fieldNames.contains).map(name =>
      Expressions.sort(Expressions.column(name), SortDirection.ASCENDING)).toArray

  /** The partition in which Kafka's producer puts a key, of which the last bytes, the window, do not count. */
  def partition(key: Array[Byte], suffix: Int, partitions: Int): Int =
    Utils.toPositive(Utils.murmur2(if (suffix == 0) key else key.dropRight(suffix))) % partitions
}

/** Where a row stands, as a struct: `time`, the largest of the timestamps up to it among the rows of its task, and
  * `place`, which grows from row to row.
  */
case class RowPlace(child: Expression) extends UnaryExpression with Nondeterministic {
  @transient private var places: Places = _

  override def stateful: Boolean = true
  override def nullable: Boolean = false
  override def dataType: DataType = new StructType().add("time", LongType, false).add("place", LongType, false)

  override protected def initializeInternal(partitionIndex: Int): Unit = places = new Places(partitionIndex)

  override protected def evalInternal(input: InternalRow): Any = {
    val timestamp = child.eval(input)
    places.next(if (timestamp == null) Long.MinValue else timestamp.asInstanceOf[Long])
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val kind = classOf[Places].getName
    val places = ctx.addMutableState(kind, "places", forceInline = true)
    ctx.addPartitionInitializationStatement(s"$places = new $kind(partitionIndex);")
    val timestamp = child.genCode(ctx)
    val code = code"""
      ${timestamp.code}
      InternalRow ${ev.value} = $places.next(${timestamp.isNull} ? Long.MIN_VALUE : ${timestamp.value});"""
    ev.copy(code = code, isNull = FalseLiteral)
  }

  override protected def withNewChildInternal(timestamp: Expression): RowPlace = copy(child = timestamp)
}

/** The places of the rows of one task of Spark. */
class Places(partition: Int) {
  private var time = Long.MinValue
  private var place = partition.toLong << 40

  /** The place of the next row. */
  def next(timestamp: Long): InternalRow = {
    time = math.max(time, timestamp)
    place += 1
    new GenericInternalRow(Array[Any](time, place))
  }
}
