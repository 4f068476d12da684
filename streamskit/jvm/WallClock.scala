package org.apache.spark.sql.streamskit

import java.util.{Map => JavaMap, Set => JavaSet}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset}
import org.apache.spark.sql.types.{StructField, StructType, TimestampType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A source for Spark's streams: the wall clock, a row with the column "timestamp" every so many milliseconds ("every").
  *
  * A micro-batch has the latest `WallClock.Most` of the ticks since the one before it, however long ago that was: as in
  * Kafka Streams, what was missed while nothing ran is not made up for. Spark's own source "rate" has all of them.
  */
class WallClock extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = WallClock.schema

  override def getTable(schema: StructType, parts: Array[Transform], properties: JavaMap[String, String]): Table =
    WallClockTable
}

object WallClock {
  val schema: StructType = StructType(Seq(StructField("timestamp", TimestampType)))
  val Most = 10L
}

object WallClockTable extends Table with SupportsRead {
  override def name: String = "the wall clock"
  override def schema: StructType = WallClock.schema
  override def capabilities: JavaSet[TableCapability] = JavaSet.of(TableCapability.MICRO_BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
    new Scan {
      override def readSchema: StructType = WallClock.schema
      override def toMicroBatchStream(checkpoint: String): MicroBatchStream = new Ticks(options.getLong("every", 1000))
    }
}

/** Offsets are times in milliseconds: the last tick of a micro-batch. */
case class Tick(at: Long) extends Offset {
  override def json: String = at.toString
}

class Ticks(every: Long) extends MicroBatchStream {
  override def initialOffset: Offset = latestOffset
  override def latestOffset: Offset = Tick(Math.floorDiv(System.currentTimeMillis, every) * every)
  override def deserializeOffset(json: String): Offset = Tick(json.trim.toLong)
  override def commit(end: Offset): Unit = ()
  override def stop(): Unit = ()
  override def toString: String = "WallClock"

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    val (from, last) = (start.asInstanceOf[Tick].at, end.asInstanceOf[Tick].at)
    Array(TicksOf(Math.max(from, last - WallClock.Most * every) + every, last, every))
  }

  override def createReaderFactory(): PartitionReaderFactory = TicksReaders
}

/** The ticks from a first one to a last one. */
case class TicksOf(first: Long, last: Long, every: Long) extends InputPartition

object TicksReaders extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val ticks = partition.asInstanceOf[TicksOf]
    new PartitionReader[InternalRow] {
      private var at = ticks.first - ticks.every
      override def next(): Boolean = { at += ticks.every; at <= ticks.last }
      override def get(): InternalRow = InternalRow(at * 1000)
      override def close(): Unit = ()
    }
  }
}
