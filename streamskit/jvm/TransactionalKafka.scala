package org.apache.spark.sql.streamskit

import java.util.{Map => JavaMap, Set => JavaSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, SortOrder, Transform}
import org.apache.spark.sql.connector.read.streaming.ReportsSinkMetrics
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A sink for Spark's streams: Kafka, with one transaction for each micro-batch. It takes rows as
  * `ProducerRecords` says.
  *
  * Its options are those of the producer, "reader" (the settings of a consumer, as text), "marks" (the topic of the
  * marks), "run" (a name for this run of the query), "windowed" of `ProducerRecords` and "chosen" of `ChosenTopics`;
  * and for the copy of the checkpoint "checkpoint", "copy" (its topic), "about" and "from": see `CheckpointCopy`.
  */
class TransactionalKafka extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType

  override def getTable(schema: StructType, parts: Array[Transform], properties: JavaMap[String, String]): Table =
    new TransactionalTopics
}

class TransactionalTopics extends SupportsWrite with ReportsSinkMetrics {
  private var replayed = false

  override def name: String = "Kafka in transactions"
  override def schema: StructType = new StructType
  override def capabilities: JavaSet[TableCapability] =
    JavaSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA)

  /** Whether the last micro-batch had been written before. */
  override def metrics: JavaMap[String, String] = JavaMap.of("replayed", replayed.toString)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    new WriteBuilder with SupportsStreamingUpdateAsAppend {
      override def build(): Write = new OneTransaction(info, replayed = _)
    }
}

/** The write of a micro-batch: one task, as a transaction has one producer. The tasks before it run side by side. */
class OneTransaction(info: LogicalWriteInfo, say: Boolean => Unit)
    extends RequiresDistributionAndOrdering with StreamingWrite {
  override def toStreaming: StreamingWrite = this
  override def requiredNumPartitions: Int = 1
  override def requiredDistribution: Distribution =
    Distributions.clustered(Array[Expression](Expressions.column("topic")))
  override def requiredOrdering: Array[SortOrder] = WriteOrder.of(info.schema)

  override def createStreamingWriterFactory(physical: PhysicalWriteInfo): StreamingDataWriterFactory =
    TransactionFactory(info.queryId, info.schema, info.options.asCaseSensitiveMap.asScala.toMap)

  override def useCommitCoordinator: Boolean = false
  override def commit(batch: Long, messages: Array[WriterCommitMessage]): Unit =
    say(messages.contains(Done(replayed = true)))
  override def abort(batch: Long, messages: Array[WriterCommitMessage]): Unit = ()
}

case class TransactionFactory(query: String, schema: StructType, options: Map[String, String])
    extends StreamingDataWriterFactory {
  override def createWriter(partition: Int, task: Long, batch: Long): DataWriter[InternalRow] = {
    val mark = Mark(query, options("run"), batch)
    val transactions = Transactions.before(mark, options.asJava, options("marks"))
    def copy = new CheckpointCopy(Transactions.reader(options.asJava), options("checkpoint"), options("copy"), options("about"))
    val records = new ProducerRecords(schema, options.getOrElse("windowed", ""))
    val topics = new ChosenTopics(options.getOrElse("chosen", ""))
    try new TransactionWriter(transactions, mark, records, topics, transactions.copied(copy), options("from").toLong)
    catch { case failure: Throwable => transactions.close(); throw failure }
  }
}

case class Done(replayed: Boolean) extends WriterCommitMessage

/** Writes the rows of a micro-batch, unless an earlier try has committed them: then Spark alone did not know of it. */
class TransactionWriter(
    transactions: Transactions, mark: Mark, records: ProducerRecords, topics: ChosenTopics, copy: CheckpointCopy,
    from: Long)
    extends DataWriter[InternalRow] {
  private val replayed = transactions.last.batch == mark.batch
  private var isDone = false
  if (!replayed) transactions.begin()

  override def write(row: InternalRow): Unit = if (!replayed) transactions.send(records.of(row), topics)

  override def commit(): WriterCommitMessage = {
    if (!replayed) {
      copy.add(transactions, mark.batch, from) // the state of the micro-batch is saved by now
      transactions.commit(mark)
    }
    isDone = true
    Done(replayed)
  }

  override def abort(): Unit = ()
  override def close(): Unit = if (isDone) Transactions.keep(transactions, mark) else transactions.close()
}
