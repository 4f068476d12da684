package org.apache.spark.sql.streamskit

import scala.util.control.NonFatal

import com.fasterxml.jackson.core.{JsonFactory, JsonParser}
import com.fasterxml.jackson.core.util.JsonParserDelegate
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.json.{JSONOptions, JacksonParser}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** Reads bytes that are one JSON value of a schema, and fails on any others.
  *
  * Spark's from_json does so from text only, takes an empty text for null, and stops after the first value. `serde` is
  * the name that the error speaks of.
  */
case class ReadJson(child: Expression, schema: DataType, serde: String, zone: String) extends UnaryExpression {
  @transient private lazy val reader = new JsonReader(schema, serde, zone)

  override def dataType: DataType = schema

  override def nullable: Boolean = true

  override def nullSafeEval(bytes: Any): Any = reader.read(bytes.asInstanceOf[Array[Byte]])

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val readers = ctx.addReferenceObj("jsonReader", reader, classOf[JsonReader].getName)
    val boxed = CodeGenerator.boxedType(dataType)
    nullSafeCodeGen(ctx, ev, bytes => {
      val made = ctx.freshName("made")
      s"""
        $boxed $made = ($boxed) $readers.read($bytes);
        if ($made == null) { ${ev.isNull} = true; } else { ${ev.value} = $made; }
      """
    })
  }

  override protected def withNewChildInternal(changed: Expression): ReadJson = copy(child = changed)
}

class JsonReader(schema: DataType, serde: String, zone: String) extends Serializable {
  // Spark's parser wants something with members: anything else is read as a list of one.
  private val inList = schema match {
    case _: StructType | _: ArrayType | _: MapType => false
    case _ => true
  }

  @transient private lazy val parser = {
    val options = new JSONOptions(Map("mode" -> "FAILFAST", "allowSingleQuotes" -> "false"), zone)
    new JacksonParser(if (inList) ArrayType(schema) else schema, options, allowArrayAsStructs = false)
  }

  @transient private lazy val plain = PlainJson.of(schema).orNull

  def read(bytes: Array[Byte]): Any = {
    val row = if (plain == null) null else plain.read(bytes)
    if (row == null) readAny(bytes) else row
  }

  private def readAny(bytes: Array[Byte]): Any = {
    val text = if (inList) "[".getBytes ++ bytes ++ "]".getBytes else bytes
    if (isNull(bytes)) null
    else {
      var read: OneValue = null
      val open = (factory: JsonFactory, given: Array[Byte]) => {
        read = new OneValue(factory.createParser(given))
        read
      }
      val rows =
        try parser.parse[Array[Byte]](text, open, UTF8String.fromBytes).toSeq
        catch { case NonFatal(_) => throw Refusal(serde, bytes, "it is not JSON text of this schema") }
      if (rows.isEmpty) throw Refusal(serde, bytes, "it is not JSON text of this schema")
      if (read.hasMore) throw Refusal(serde, bytes, "it is more than one JSON value")
      value(rows.head, bytes)
    }
  }

  private def value(row: InternalRow, bytes: Array[Byte]): Any = schema match {
    case _: StructType => row
    case _: ArrayType => row.getArray(0)
    case _: MapType => row.getMap(0)
    case _ =>
      val list: ArrayData = row.getArray(0)
      if (list.numElements == 0) throw Refusal(serde, bytes, "it is not JSON text of this schema")
      if (list.numElements > 1) throw Refusal(serde, bytes, "it is more than one JSON value")
      if (list.isNullAt(0)) null else list.get(0, schema)
  }

  private def isNull(bytes: Array[Byte]): Boolean =
    bytes.length >= 4 && bytes.length < 16 && new String(bytes, "UTF-8").trim == "null"
}

/** A parser that notes, when it is closed, whether anything is left to read. */
private class OneValue(given: JsonParser) extends JsonParserDelegate(given) {
  var hasMore = false

  override def close(): Unit = {
    hasMore = try nextToken() != null catch { case NonFatal(_) => true }
    super.close()
  }
}
