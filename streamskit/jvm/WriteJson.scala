package org.apache.spark.sql.streamskit

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.expressions.{Expression, StructsToJson, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.json.StructsToJsonEvaluator
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.types.{ArrayType, BinaryType, BooleanType, DataType, DoubleType, IntegerType, LongType, MapType, StringType, StructType, TimestampNTZType, TimestampType}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Writes rows, lists and maps as the bytes of JSON text: those of Spark's to_json, which writes nulls, too.
  *
  * Only a value with a time that milliseconds do not hold is written otherwise: its times have microseconds. As keys,
  * times that differ would be the same without them.
  */
case class WriteJson(child: Expression, zone: String) extends UnaryExpression {
  @transient private lazy val writer = new JsonWriter(child.dataType, zone)

  override def dataType: DataType = BinaryType

  override def checkInputDataTypes(): TypeCheckResult =
    StructsToJson(JsonWriter.Options, child, Some(zone)).checkInputDataTypes()

  override def nullSafeEval(value: Any): Any = writer.write(value)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val writers = ctx.addReferenceObj("jsonWriter", writer, classOf[JsonWriter].getName)
    nullSafeCodeGen(ctx, ev, value => s"${ev.value} = $writers.write($value);")
  }

  override protected def withNewChildInternal(changed: Expression): WriteJson = copy(child = changed)
}

class JsonWriter(dataType: DataType, zone: String) extends Serializable {
  @transient private lazy val any = StructsToJsonEvaluator(JsonWriter.Options, dataType, Some(zone))
  @transient private lazy val exact = StructsToJsonEvaluator(JsonWriter.ExactOptions, dataType, Some(zone))
  @transient private lazy val plain = PlainJsonWriter.of(dataType).orNull
  @transient private lazy val hasMicroseconds = Microseconds.in(dataType).orNull

  def write(value: Any): Array[Byte] = {
    val text = if (plain == null) null else plain.write(value.asInstanceOf[InternalRow])
    if (text != null) text
    else {
      val writer = if (hasMicroseconds != null && hasMicroseconds(value)) exact else any
      writer.evaluate(value).asInstanceOf[UTF8String].getBytes
    }
  }
}

object JsonWriter {
  val Options: Map[String, String] = Map("ignoreNullFields" -> "false")
  val ExactOptions: Map[String, String] = Options ++ Map(
    "timestampFormat" -> "yyyy-MM-dd'T'HH:mm:ss.SSSSSS[XXX]",
    "timestampNTZFormat" -> "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
}

private object Microseconds {
  /** Whether a value of a type has a time that milliseconds do not hold; none where the type has no times. */
  def in(dataType: DataType): Option[Any => Boolean] = dataType match {
    case TimestampType | TimestampNTZType => Some(time => time.asInstanceOf[Long] % 1000 != 0)
    case StructType(fields) =>
      val inner = fields.map(field => in(field.dataType))
      val timed = fields.indices.filter(inner(_).nonEmpty).toArray
      if (timed.isEmpty) None
      else Some { value =>
        val row = value.asInstanceOf[InternalRow]
        timed.exists(field => !row.isNullAt(field) && inner(field).get(row.get(field, fields(field).dataType)))
      }
    case ArrayType(of, _) => in(of).map(inner => value => isIn(value.asInstanceOf[ArrayData], of, inner))
    case MapType(_, of, _) => in(of).map(inner => value => isIn(value.asInstanceOf[MapData].valueArray(), of, inner))
    case _ => None
  }

  private def isIn(items: ArrayData, of: DataType, inner: Any => Boolean): Boolean =
    (0 until items.numElements()).exists(at => !items.isNullAt(at) && inner(items.get(at, of)))
}

/** Writes the plainest JSON objects, which most records are, in a third of the time that a writer of all JSON takes.
  *
  * Their members are numbers, truth values, nulls, and ASCII text without escapes. Of any other row it says nothing:
  * somebody else has to write it.
  */
private class PlainJsonWriter(schema: StructType) {
  private val names = schema.fieldNames.zipWithIndex.map { case (name, field) =>
    s"""${if (field == 0) "{" else ","}"$name":""".getBytes(UTF_8)
  }
  private val types: Array[DataType] = schema.fields.map(_.dataType)
  private var bytes = new Array[Byte](256)
  private var size = 0

  /** A row as text, or null where it is not plain. */
  def write(row: InternalRow): Array[Byte] = {
    size = 0
    var field = 0
    while (field < names.length) {
      put(names(field))
      if (row.isNullAt(field)) put(PlainJsonWriter.Null) else if (!value(row, field)) return null
      field += 1
    }
    put(PlainJsonWriter.End)
    Arrays.copyOf(bytes, size)
  }

  private def value(row: InternalRow, field: Int): Boolean = types(field) match {
    case StringType => text(row.getUTF8String(field))
    case IntegerType => integer(row.getInt(field))
    case LongType => integer(row.getLong(field))
    case BooleanType => put(if (row.getBoolean(field)) PlainJsonWriter.True else PlainJsonWriter.False); true
    case DoubleType =>
      val number = row.getDouble(field)
      val isNumber = !number.isNaN && !number.isInfinite
      if (isNumber) put(java.lang.Double.toString(number).getBytes(ISO_8859_1))
      isNumber
  }

  private def text(value: UTF8String): Boolean = {
    val length = value.numBytes
    makeRoom(length + 2)
    bytes(size) = '"'
    value.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + size + 1)
    var at = size + 1
    val end = at + length
    while (at < end && bytes(at) >= ' ' && bytes(at) != '"' && bytes(at) != '\\') at += 1
    bytes(end) = '"'
    size = end + 1
    at == end
  }

  private def integer(value: Long): Boolean = {
    makeRoom(20)
    if (value < 0) { bytes(size) = '-'; size += 1 }
    var rest = -math.abs(value) // of the least number there is no positive one
    var digits = 1
    while ({ rest /= 10; rest != 0 }) digits += 1
    rest = -math.abs(value)
    for (at <- size + digits - 1 to size by -1) { bytes(at) = ('0' - rest % 10).toByte; rest /= 10 }
    size += digits
    true
  }

  private def put(some: Array[Byte]): Unit = {
    makeRoom(some.length)
    System.arraycopy(some, 0, bytes, size, some.length)
    size += some.length
  }

  private def makeRoom(more: Int): Unit = if (size + more > bytes.length) bytes = Arrays.copyOf(bytes, 2 * (size + more))
}

private object PlainJsonWriter {
  private val Null = "null".getBytes(UTF_8)
  private val True = "true".getBytes(UTF_8)
  private val False = "false".getBytes(UTF_8)
  private val End = "}".getBytes(UTF_8)
  private val Types = Set[DataType](BooleanType, DoubleType, IntegerType, LongType, StringType)

  /** A writer of the plain objects among the values of a type; none where no object of it is plain. */
  def of(dataType: DataType): Option[PlainJsonWriter] = dataType match {
    case schema: StructType if schema.nonEmpty && schema.forall(field =>
          Types.contains(field.dataType) && field.name.forall(sign => sign >= ' ' && sign < 127 && sign != '"' && sign != '\\')) =>
      Some(new PlainJsonWriter(schema))
    case _ => None
  }
}
