package org.apache.spark.sql.streamskit

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.types.DataType

/** Columns made by streamskit's own expressions.
  *
  * They go through Spark's registry of internal functions, as a Column that is turned into an expression at once forgets
  * the line where it was written.
  */
object Functions {
  def attempt(column: Column): Column = call("streamskit_attempt", column)

  def readJson(column: Column, schema: String, serde: String, zone: String): Column =
    call("streamskit_read_json", column, lit(schema), lit(serde), lit(zone))

  def readNumber(column: Column, dataType: String, serde: String): Column =
    call("streamskit_read_number", column, lit(dataType), lit(serde))

  private def call(name: String, arguments: Column*): Column = Column.internalFn(name, arguments: _*)

  register("streamskit_attempt") { case Seq(child) => Attempt(child) }
  register("streamskit_read_json") { case Seq(child, schema, serde, zone) =>
    ReadJson(child, DataType.fromJson(text(schema)), text(serde), text(zone))
  }
  register("streamskit_read_number") { case Seq(child, kind, serde) =>
    ReadNumber(child, DataType.fromJson(text(kind)), text(serde))
  }

  private def register(name: String)(make: PartialFunction[Seq[Expression], Expression]): Unit =
    FunctionRegistry.internal.registerFunction(
      FunctionIdentifier(name), new ExpressionInfo("streamskit", name), make)

  private def text(argument: Expression): String = argument.asInstanceOf[Literal].value.toString
}
