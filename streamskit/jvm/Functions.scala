package org.apache.spark.sql.streamskit

import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.types.{DataType, IntegerType, StructType}

/** Columns made by streamskit's own expressions.
  *
  * They go through Spark's registry of internal functions, as a Column that is turned into an expression at once forgets
  * the line where it was written.
  */
object Functions {
  def attempt(column: Column): Column = call("streamskit_attempt", column)

  def valueOrFailure(column: Column): Column = call("streamskit_value_or_failure", column)

  def readJson(column: Column, schema: String, serde: String, zone: String): Column =
    call("streamskit_read_json", column, lit(schema), lit(serde), lit(zone))

  def writeJson(column: Column, zone: String): Column = call("streamskit_write_json", column, lit(zone))

  def readNumber(column: Column, dataType: String, serde: String): Column =
    call("streamskit_read_number", column, lit(dataType), lit(serde))

  def streamTime(partition: Column, timestamp: Column, folder: String, size: Long, grace: Long): Column =
    call("streamskit_stream_time", partition, timestamp, lit(folder), lit(size), lit(grace))

  def rowPlace(timestamp: Column): Column = call("streamskit_row_place", timestamp)

  def partitionOf(key: Column, suffix: Int, partitions: Int): Column =
    call("streamskit_partition_of", key, lit(suffix), lit(partitions))

  def pack(record: Column): Column = call("streamskit_pack", record)

  def unpack(records: Column, schema: String): Column = call("streamskit_unpack", records, lit(schema))

  def withEnds(row: Column): Column = call("streamskit_end_of_batch", row)

  def driverTold(what: Column, id: String): Column = call("streamskit_driver_told", what, lit(id))

  def driverPlace(id: String): Column = call("streamskit_driver_place", lit(id))

  private def call(name: String, arguments: Column*): Column = Column.internalFn(name, arguments: _*)

  register("streamskit_attempt") { case Seq(child) => Attempt(child) }
  register("streamskit_value_or_failure") { case Seq(child) => ValueOrFailure(child) }
  register("streamskit_read_json") { case Seq(child, schema, serde, zone) =>
    ReadJson(child, DataType.fromJson(text(schema)), text(serde), text(zone))
  }
  register("streamskit_write_json") { case Seq(child, zone) => WriteJson(child, text(zone)) }
  register("streamskit_read_number") { case Seq(child, kind, serde) =>
    ReadNumber(child, DataType.fromJson(text(kind)), text(serde))
  }
  register("streamskit_stream_time") { case Seq(partition, timestamp, folder, size, grace) =>
    StreamTime(partition, timestamp, text(folder), text(size).toLong, text(grace).toLong)
  }

  register("streamskit_row_place") { case Seq(timestamp) => RowPlace(timestamp) }
  register("streamskit_partition_of") { case arguments =>
    StaticInvoke(WriteOrder.getClass, IntegerType, "partition", arguments)
  }
  register("streamskit_pack") { case Seq(record) => PackRecords(record) }
  register("streamskit_unpack") { case Seq(records, schema) => UnpackRecords(records, StructType.fromDDL(text(schema))) }
  register("streamskit_end_of_batch") { case Seq(row) => EndOfBatch(row) }
  register("streamskit_driver_told") { case Seq(what, id) => DriverTold(what, text(id)) }

  register("streamskit_driver_place") { case Seq(id) => DriverPlace(text(id)) }

  private def register(name: String)(make: PartialFunction[Seq[Expression], Expression]): Unit =
    FunctionRegistry.internal.registerFunction(
      FunctionIdentifier(name), new ExpressionInfo("streamskit", name), make)

  private def text(argument: Expression): String = argument.asInstanceOf[Literal].value.toString
}
