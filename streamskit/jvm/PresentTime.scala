package org.apache.spark.sql.streamskit

import java.time.Instant

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Cast, CurrentDate, CurrentTimestamp, LeafExpression, LocalTimestamp, Now}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.types.{DataType, DateType, TimestampNTZType, TimestampType}

/** The time of day, as it is when a record is processed.
  *
  * Spark takes it once for a batch, and a batch in real-time mode lasts for minutes.
  */
case class PresentTime() extends LeafExpression with CodegenFallback {
  override def dataType: DataType = TimestampType
  override def nullable: Boolean = false
  override def eval(input: InternalRow): Any = DateTimeUtils.instantToMicros(Instant.now())
}

object PresentTime {

  /** The same frame, where functions of the time of day look at the clock for each record. */
  def forEachRecord(frame: DataFrame): DataFrame = {
    val whole = frame.asInstanceOf[Dataset[_]]
    Dataset.ofRows(whole.sparkSession, whole.logicalPlan.transformAllExpressions {
      case _: CurrentTimestamp | _: Now => PresentTime()
      case CurrentDate(zone) => Cast(PresentTime(), DateType, zone)
      case LocalTimestamp(zone) => Cast(PresentTime(), TimestampNTZType, zone)
    })
  }
}
