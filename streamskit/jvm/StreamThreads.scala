package org.apache.spark.sql.streamskit

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkContext
import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}

/** How many tasks of a query Spark runs at a time: the stream threads of an application, by its name.
  *
  * Spark's scheduler has no such limit, so a stage gets no more tasks than that: each takes several partitions, one after
  * the other. A number may change while a query runs, since Spark plans each micro-batch anew.
  */
object StreamThreads {
  private val numbers = new ConcurrentHashMap[String, Integer]
  private val Tag = "num_stream_threads="

  /** Set the number of an application; 0 for as many as there are. */
  def set(name: String, number: Int): Unit = if (number > 0) numbers.put(name, number) else numbers.remove(name)

  def of(name: String): Option[Int] = Option(numbers.get(name)).map(_.intValue)

  /** Mark the end of a stage: what follows is a shuffle, or a sink. */
  def endOfStage(frame: DataFrame, name: String): DataFrame = {
    val whole = frame.asInstanceOf[Dataset[_]]
    val known = whole.sparkSession.experimental
    if (!known.extraStrategies.contains(StreamThreadsStrategy)) known.extraStrategies :+= StreamThreadsStrategy
    Dataset.ofRows(whole.sparkSession, EndOfStage(name, whole.logicalPlan))
  }

  /** Note the number beside the jobs that this thread starts, which `spark_tasks` reads there. */
  private[streamskit] def tag(number: Option[Int]): Unit = SparkContext.getActive.foreach { spark =>
    val (now, wanted) = (spark.getJobTags().filter(_.startsWith(Tag)), number.map(each => s"$Tag$each").toSet)
    (now -- wanted).foreach(spark.removeJobTag)
    (wanted -- now).foreach(spark.addJobTag)
  }

  /** The number that the tags of a job have; 0 where there was none. */
  def tagged(tags: scala.collection.Seq[String]): Int =
    tags.find(_.startsWith(Tag)).fold(0)(_.drop(Tag.length).toInt)
}

/** The last rows of a stage, as they are. */
case class EndOfStage(name: String, child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override def maxRows: Option[Long] = child.maxRows
  override protected def withNewChildInternal(changed: LogicalPlan): EndOfStage = copy(child = changed)
}

/** Plans the end of a stage by the number that holds now; where there is none, nothing is added to the stage. */
object StreamThreadsStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case EndOfStage(name, child) =>
      val number = StreamThreads.of(name)
      StreamThreads.tag(number)
      number.fold(planLater(child))(InTurnExec(_, planLater(child))) :: Nil
    case _ => Nil
  }
}

/** So many tasks at most: Spark's own `Coalesce`, whose tasks have the same partitions in each micro-batch. */
case class InTurnExec(number: Int, child: SparkPlan) extends UnaryExecNode {
  override def nodeName: String = "Coalesce"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = UnknownPartitioning(number)
  override protected def doExecute(): RDD[InternalRow] =
    child.execute().coalesce(number, shuffle = false, partitionCoalescer = Some(new InTurn))
  override protected def withNewChildInternal(changed: SparkPlan): InTurnExec = copy(child = changed)
}

/** Shares partitions out by their numbers. A task runs where its first partition has its state or its reader. */
class InTurn extends PartitionCoalescer with Serializable {
  override def coalesce(most: Int, parent: RDD[_]): Array[PartitionGroup] = {
    val number = math.min(most, parent.partitions.length)
    parent.partitions.groupBy(_.index % math.max(1, number)).toArray.sortBy(_._1).map { case (_, own) =>
      val group = new PartitionGroup(parent.context.getPreferredLocs(parent, own.head.index).headOption.map(_.toString))
      group.partitions ++= own
      group
    }
  }
}
