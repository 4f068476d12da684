package streamskit

import java.time.Duration

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.Consumer
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.TimeoutException

/** Chooses where a micro-batch ends in each partition, such that records are taken in the order of their timestamps.
  *
  * What is chosen is what a task of Kafka Streams takes next: of its partitions (those of equal number) the one whose
  * next record is the earliest goes on. Mirrors `PartitionGroup#readyToProcess` and `nextRecord`.
  *
  * @param topics those that are read, in the order in which they go when times are equal
  * @param first those of global tables: they are read to their end before a record of another one is
  * @param most how many records a micro-batch takes
  * @param idle for how many milliseconds a partition without records is waited for (`max.task.idle.ms`)
  * @param lookahead opens what says when the next records are
  */
class BatchPlanner(topics: Seq[String], first: Set[String], most: Long, idle: Long, lookahead: () => Lookahead) {
  type Offsets = Map[TopicPartition, Long]

  private val Many = 20000 // to read fewer is as quick as to ask where times are
  private val LastTime = 1L << 44
  private var wholeTables: Option[Offsets] = None
  private val emptySince = mutable.Map[TopicPartition, Long]()
  private var opened: Option[Lookahead] = None

  /** The end of a micro-batch, given where it starts, what there is, and the time in milliseconds.
    *
    * @param fitting how many records fit into it, where that is known
    */
  def end(start: Offsets, latest: Offsets, now: Long, fitting: Long = Long.MaxValue): Offsets = {
    val most = this.most.min(fitting)
    // Of partitions that are new, or shorter than they were, Spark has to say itself what it thinks.
    val known = start.keySet.filter(where => latest.get(where).exists(_ >= start(where)))
    val (tables, streams) = known.partition(where => first(where.topic))
    if (wholeTables.isEmpty) wholeTables = Some(latest.view.filterKeys(tables).toMap)
    val isBehind = wholeTables.get.exists { case (where, end) => start.get(where).exists(_ < end) }
    // Tables that grow all the time must not keep the streams from passing.
    val ofTables = inTurn(tables, start, latest, if (isBehind) most else (most / 2).max(1))
    val isWhole = wholeTables.get.forall { case (where, end) => ofTables.get(where).forall(_ >= end) }
    val left = most - ofTables.map { case (where, end) => end - start(where) }.sum
    val ofStreams = if (isWhole) byTime(streams, start, latest, left.max(1), now) else start.view.filterKeys(streams).toMap
    latest ++ ofTables ++ ofStreams
  }

  def close(): Unit = opened.foreach(_.close())

  private def inTurn(tables: Set[TopicPartition], start: Offsets, latest: Offsets, most: Long): Offsets = {
    var left = most
    tables.toSeq.sortBy(_.toString).map { where =>
      val taken = (latest(where) - start(where)).min(left).max(0)
      left -= taken
      where -> (start(where) + taken)
    }.toMap
  }

  private def byTime(streams: Set[TopicPartition], start: Offsets, latest: Offsets, most: Long, now: Long): Offsets = {
    val (waiting, empty) = streams.partition(where => latest(where) > start(where))
    emptySince --= waiting
    empty.foreach(where => emptySince.getOrElseUpdate(where, now))
    val awaited = if (idle > 0) empty.filter(where => now - emptySince(where) < idle).map(_.partition) else Set[Int]()
    val ready = waiting.filterNot(where => awaited(where.partition))
    val all = streams.map(where => where -> (if (ready(where)) latest(where) else start(where))).toMap
    val count = ready.toSeq.map(where => latest(where) - start(where)).sum
    val mayStop = idle > 0 && ready.groupBy(_.partition).exists(_._2.size > 1)
    if (count <= most && !mayStop) all else all ++ earliest(ready, start, latest, most)
  }

  /** The ends of so many records, the earliest of those in some partitions. */
  private def earliest(ready: Set[TopicPartition], start: Offsets, latest: Offsets, most: Long): Offsets = {
    val ahead = opened.getOrElse { opened = Some(lookahead()); opened.get }
    val first = start.view.filterKeys(ready).toMap
    val jumped = if (most < Many) first else jump(ahead, first, latest, most)
    oneByOne(ahead, jumped, latest, most - between(first, jumped))
  }

  private def between(start: Offsets, end: Offsets): Long = end.map { case (where, to) => to - start(where) }.sum

  /** Go on from a start as far as times tell without a look at the records; no further than so many of them.
    *
    * Whatever the order of times in a partition, all partitions stand at their first record from a time on before the
    * first of these is taken. Where one has had a record of that time before its start, nobody can tell: nothing is done.
    */
  private def jump(ahead: Lookahead, start: Offsets, latest: Offsets, most: Long): Offsets = {
    def at(time: Long): Option[Offsets] = {
      val found = ahead.firstFrom(time, start.keySet).map { case (where, to) => where -> to.fold(latest(where))(_.min(latest(where))) }
      if (found.exists { case (where, to) => to < start(where) }) None else Some(found)
    }
    // One that has come to its end may have to be waited for.
    def goesOn(ends: Offsets) = idle <= 0 || ends.forall { case (where, to) => to < latest(where) }
    def fits(ends: Offsets) = between(start, ends) <= most && goesOn(ends)

    var (low, high, best) = (0L, LastTime, Option.empty[Offsets])
    while (low < high - 1) {
      val middle = (low + high) / 2
      at(middle) match {
        case None => low = middle // a later time may tell
        case Some(ends) if fits(ends) => low = middle; best = Some(ends)
        case _ => high = middle
      }
    }
    val ends = best.getOrElse(start)
    if (best.isEmpty) ends else at(low + 1).fold(ends)(sameTime(start, ends, _, most, goesOn))
  }

  /** Go on with the records of one time, partition by partition. */
  private def sameTime(start: Offsets, from: Offsets, to: Offsets, most: Long, goesOn: Offsets => Boolean): Offsets = {
    val inOrder = from.keySet.toSeq.sortBy(where => (topics.indexOf(where.topic), where.partition))
    val steps = inOrder.scanLeft(from)((ends, where) => ends + (where -> to(where)))
    steps.takeWhile(ends => between(start, ends) <= most && goesOn(ends)).last
  }

  private def oneByOne(ahead: Lookahead, start: Offsets, latest: Offsets, most: Long): Offsets = {
    ahead.aim(start)
    val order = Ordering.by[(Long, TopicPartition), (Long, Int, Int)] { case (time, where) =>
      (-time, -topics.indexOf(where.topic), -where.partition) // the queue hands out the greatest
    }
    val queue = mutable.PriorityQueue[(Long, TopicPartition)]()(order)
    val ends = mutable.Map[TopicPartition, Long]()
    val stopped = mutable.Set[Int]()

    def look(where: TopicPartition): Unit = ahead.next(where, latest(where)) match {
      case Some((offset, time)) =>
        ends(where) = offset
        queue.enqueue(time -> where)
      case None =>
        ends(where) = latest(where)
        if (idle > 0) stopped += where.partition // its next record may be earlier than what the others have
    }

    start.keySet.toSeq.sortBy(_.toString).foreach(look)
    var taken = 0L
    while (taken < most && queue.nonEmpty) {
      val (_, where) = queue.dequeue()
      if (!stopped(where.partition)) {
        ahead.take(where)
        taken += 1
        look(where)
      }
    }
    ends.toMap
  }
}

/** Knows the timestamps of the next records of partitions: it reads somewhat ahead of the micro-batches, once. */
class Lookahead(consumer: Consumer[Array[Byte], Array[Byte]]) {
  private val Enough = 20000
  private val Patience = 45000L
  private val ahead = mutable.Map[TopicPartition, mutable.ArrayDeque[(Long, Long)]]()
  private val position = mutable.Map[TopicPartition, Long]()

  /** Go on from these offsets. */
  def aim(starts: Map[TopicPartition, Long]): Unit = {
    (ahead.keySet -- starts.keySet).foreach { where => ahead -= where; position -= where }
    consumer.assign(starts.keySet.asJava)
    starts.foreach { case (where, start) =>
      val known = ahead.getOrElseUpdate(where, mutable.ArrayDeque())
      while (known.headOption.exists(_._1 < start)) known.removeHead()
      val isThere = position.get(where).exists(there => there >= start && (known.nonEmpty || there == start))
      if (!isThere) { // what was fetched is kept otherwise
        known.clear()
        position(where) = start
        consumer.seek(where, start)
      }
    }
  }

  /** The first offset from a time on in each of some partitions; none where there is no such record. */
  def firstFrom(time: Long, partitions: Set[TopicPartition]): Map[TopicPartition, Option[Long]] = {
    val found = consumer.offsetsForTimes(partitions.map(_ -> java.lang.Long.valueOf(time)).toMap.asJava).asScala
    partitions.map(where => where -> found.get(where).flatMap(Option(_)).map(_.offset)).toMap
  }

  /** The offset and the time of the next record of a partition; none if there is none before an end. */
  def next(where: TopicPartition, end: Long): Option[(Long, Long)] = {
    val known = ahead(where)
    val deadline = System.currentTimeMillis + Patience
    while (known.isEmpty && position(where) < end) {
      read()
      if (known.isEmpty && System.currentTimeMillis > deadline)
        throw new TimeoutException(s"$where was not read up to $end: it stands at ${position(where)}")
    }
    known.headOption.filter(_._1 < end)
  }

  /** Have the next record of a partition behind. */
  def take(where: TopicPartition): Unit = ahead(where).removeHead()

  def close(): Unit = consumer.close(Duration.ofSeconds(5))

  private def read(): Unit = {
    val (full, hungry) = ahead.keySet.toSet.partition(where => ahead(where).size >= Enough)
    consumer.pause(full.asJava)
    consumer.resume(hungry.asJava)
    val records = consumer.poll(Duration.ofMillis(500))
    records.partitions.asScala.foreach { where =>
      ahead(where) ++= records.records(where).asScala.map(record => record.offset -> record.timestamp)
    }
    hungry.foreach(where => position(where) = consumer.position(where)) // behind what has no record, such as a commit's mark
  }
}
