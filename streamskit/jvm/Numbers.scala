package org.apache.spark.sql.streamskit

import java.nio.ByteBuffer

import org.apache.spark.SparkRuntimeException
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType, IntegerType, LongType, ShortType}

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

object Numbers {
  private[streamskit] val here = "org.apache.spark.sql.streamskit.Numbers"

  def readLong(bytes: Array[Byte], serde: String): Long = buffer(bytes, 8, " long", serde).getLong
  def readInteger(bytes: Array[Byte], serde: String): Int = buffer(bytes, 4, "n integer", serde).getInt
  def readShort(bytes: Array[Byte], serde: String): Short = buffer(bytes, 2, " short", serde).getShort
  def readFloat(bytes: Array[Byte], serde: String): Float = buffer(bytes, 4, " float", serde).getFloat
  def readDouble(bytes: Array[Byte], serde: String): Double = buffer(bytes, 8, " double", serde).getDouble

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
