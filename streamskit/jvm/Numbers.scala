package org.apache.spark.sql.streamskit

import java.nio.ByteBuffer

import org.apache.spark.SparkRuntimeException
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.types.{BinaryType, DataType, DoubleType, FloatType, IntegerType, LongType, ShortType}

/** Reads a number from its big-endian bytes, and fails where there are more or less of them.
  *
  * In Spark's own functions the same takes a dozen calls, which name the bytes again and again: generated code doubled
  * with each step. `serde` is the name that the error speaks of.
  */
case class ReadNumber(child: Expression, dataType: DataType, serde: String) extends UnaryExpression {
  override def nullSafeEval(bytes: Any): Any = {
    val given = bytes.asInstanceOf[Array[Byte]]
    dataType match {
      case LongType => Numbers.readLong(given, serde)
      case IntegerType => Numbers.readInteger(given, serde)
      case ShortType => Numbers.readShort(given, serde)
      case FloatType => Numbers.readFloat(given, serde)
      case DoubleType => Numbers.readDouble(given, serde)
    }
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val name = ctx.addReferenceObj("serde", serde, "String")
    val kind = dataType.typeName.capitalize
    nullSafeCodeGen(ctx, ev, bytes => s"${ev.value} = ${Numbers.here}.read$kind($bytes, $name);")
  }

  override protected def withNewChildInternal(changed: Expression): ReadNumber = copy(child = changed)
}

/** Writes a number as its big-endian bytes, as Java's ByteBuffer does. */
case class WriteNumber(child: Expression) extends UnaryExpression {
  override def dataType: DataType = BinaryType

  override def nullSafeEval(number: Any): Any = number match {
    case whole: Long => Numbers.write(whole)
    case whole: Int => Numbers.write(whole)
    case whole: Short => Numbers.write(whole)
    case broken: Float => Numbers.write(broken)
    case broken: Double => Numbers.write(broken)
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    nullSafeCodeGen(ctx, ev, number => s"${ev.value} = ${Numbers.here}.write($number);")

  override protected def withNewChildInternal(changed: Expression): WriteNumber = copy(child = changed)
}

object Numbers {
  private[streamskit] val here = "org.apache.spark.sql.streamskit.Numbers"

  def readLong(bytes: Array[Byte], serde: String): Long = buffer(bytes, 8, " long", serde).getLong
  def readInteger(bytes: Array[Byte], serde: String): Int = buffer(bytes, 4, "n integer", serde).getInt
  def readShort(bytes: Array[Byte], serde: String): Short = buffer(bytes, 2, " short", serde).getShort
  def readFloat(bytes: Array[Byte], serde: String): Float = buffer(bytes, 4, " float", serde).getFloat
  def readDouble(bytes: Array[Byte], serde: String): Double = buffer(bytes, 8, " double", serde).getDouble

  def write(number: Long): Array[Byte] = ByteBuffer.allocate(8).putLong(number).array
  def write(number: Int): Array[Byte] = ByteBuffer.allocate(4).putInt(number).array
  def write(number: Short): Array[Byte] = ByteBuffer.allocate(2).putShort(number).array
  // All that is not a number is the same one in Java.
  def write(number: Float): Array[Byte] = write(java.lang.Float.floatToIntBits(number))
  def write(number: Double): Array[Byte] = write(java.lang.Double.doubleToLongBits(number))

  private def buffer(bytes: Array[Byte], width: Int, kind: String, serde: String): ByteBuffer =
    if (bytes.length == width) ByteBuffer.wrap(bytes)
    else throw Refusal(serde, bytes, s"a$kind is $width bytes long")
}

/** The error of bytes that a serde cannot read, in the words of `Serde.cannot_read`. */
private object Refusal {
  private val Longest = 60

  def apply(serde: String, bytes: Array[Byte], why: String): SparkRuntimeException = {
    val digits = bytes.take(Longest).map(byte => f"${byte & 0xff}%02x").mkString(" ")
    val short = if (digits.length > Longest) digits.take(Longest) + "…" else digits
    val count = if (bytes.length == 1) "1 byte" else s"${bytes.length} bytes"
    val shown = if (bytes.isEmpty) "no bytes" else s"$count ($short)"
    new SparkRuntimeException("USER_RAISED_EXCEPTION", Map("errorMessage" -> s"$serde cannot read $shown: $why."))
  }
}
