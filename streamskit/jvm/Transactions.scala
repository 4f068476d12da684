package org.apache.spark.sql.streamskit

import java.time.Duration
import java.util.{HashMap => JavaHashMap, List => JavaList, Map => JavaMap}
import java.util.concurrent.{ConcurrentHashMap, Executors, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.{ConsumerRecord, KafkaConsumer}
import org.apache.kafka.clients.producer.{Callback, KafkaProducer, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.{KafkaException, TopicPartition}
import org.apache.kafka.common.errors.{ProducerFencedException, TimeoutException}
import org.apache.kafka.common.serialization.{ByteArrayDeserializer, ByteArraySerializer}
import streamskit.ClientSettings

/** What a transaction says of itself: which micro-batch it wrote, of which Spark query, in which run of it. */
case class Mark(query: String, run: String, batch: Long)

/** The transactions of one query. Each ends in a mark on a topic of their own: a micro-batch that has a mark is written.
  *
  * Whoever opens them fences all who did before: what those left open is aborted, and they can commit nothing more.
  *
  * @param options the producer's settings, each with "kafka." before its name; "reader" has those of a consumer as text
  * @param marks the topic with the marks, of one partition
  */
class Transactions(options: JavaMap[String, String], val marks: String) extends AutoCloseable {
  private val settings = new JavaHashMap[String, Object]
  options.asScala.foreach { case (name, value) => if (name.startsWith("kafka.")) settings.put(name.drop(6), value) }

  private val producer = new KafkaProducer(settings, new ByteArraySerializer, new ByteArraySerializer)
  @volatile private var refused: NotWritten = _
  private var known: Option[Mark] = None
  private var copy: Option[CheckpointCopy] = None
  private var began = 0L

  try producer.initTransactions()
  catch { case failure: Throwable => close(); throw failure }

  /** The mark of the last transaction that was committed; null if there is none. */
  def last: Mark = { if (known.isEmpty) known = Transactions.lastMark(Transactions.reader(options), marks); known.orNull }

  def begin(): Unit = { producer.beginTransaction(); began = System.nanoTime }

  /** The copy of the checkpoint that goes along with these transactions: the first that was given. */
  def copied(first: => CheckpointCopy): CheckpointCopy = { copy = copy.orElse(Some(first)); copy.get }

  def send(record: ProducerRecord[Array[Byte], Array[Byte]], topics: ChosenTopics): Unit = {
    topics.await(producer, record.topic)
    send(record)
  }

  def send(record: ProducerRecord[Array[Byte], Array[Byte]]): Unit = {
    stopIfRefused()
    tellingOfTime(producer.send(record, noteRefusal))
    if (refused != null) refused = refused.of(record)
  }

  /** Make all that was sent visible at once, and the mark with it. */
  def commit(mark: Mark): Unit = {
    val record = new ProducerRecord(marks, mark.query.getBytes, mark.batch.toString.getBytes)
    record.headers.add("run", mark.run.getBytes)
    send(record)
    commit()
    known = Some(mark)
  }

  /** Make all that was sent visible at once, without a mark. */
  def commit(): Unit = {
    producer.flush()
    stopIfRefused()
    tellingOfTime(producer.commitTransaction())
  }

  /** What the broker calls fencing is its own doing where the transaction was open for longer than it allows. */
  private def tellingOfTime(call: => Unit): Unit =
    try call
    catch { case failure: KafkaException if isTooLong => throw new TransactionTimedOut(open, failure) }

  private def open: Long = (System.nanoTime - began) / 1000000
  private def isTooLong: Boolean = began != 0 && open > allowed
  private val allowed = Option(settings.get("transaction.timeout.ms")).fold(60000L)(_.toString.toLong)

  /** A transaction that is open is aborted. */
  override def close(): Unit = {
    // A task that is being stopped must not leave a transaction behind, for whose end readers would wait.
    val interrupted = Thread.interrupted()
    try producer.close(Duration.ofSeconds(5))
    finally if (interrupted) Thread.currentThread.interrupt()
  }

  private val noteRefusal = new Callback {
    override def onCompletion(where: RecordMetadata, failure: Exception): Unit =
      if (failure != null && refused == null) refused = new NotWritten(where.topic, failure)
  }

  private def stopIfRefused(): Unit =
    if (refused != null) throw (if (isTooLong) new TransactionTimedOut(open, refused) else refused)
}

class NotWritten(topic: String, why: Exception)
    extends KafkaException(s"a record could not be written to topic '$topic': $why", why) {
  /** The same with the record's key, if it is the producer that does not send it. */
  def of(record: ProducerRecord[Array[Byte], Array[Byte]]): NotWritten = new NotWritten(topic, TooLarge.of(why, record))
}

class TransactionTimedOut(milliseconds: Long, why: Exception)
    extends KafkaException(s"the transaction was open for $milliseconds ms, and the broker has aborted it: $why", why)

object Transactions {
  type Read = ConsumerRecord[Array[Byte], Array[Byte]]

  private val Patience = Duration.ofMinutes(1)
  private val kept = new ConcurrentHashMap[String, (Transactions, Mark)]
  private val idle = Executors.newSingleThreadScheduledExecutor { task =>
    val thread = new Thread(task, "streamskit: transactions")
    thread.setDaemon(true)
    thread
  }

  /** Return the transactions that wrote the micro-batch before this one in this process; otherwise open them anew. */
  def before(mark: Mark, options: JavaMap[String, String], marks: String): Transactions =
    Option(kept.remove(marks)) match {
      case Some((transactions, last)) if last == mark.copy(batch = mark.batch - 1) => transactions
      case other =>
        other.foreach(_._1.close())
        stopIfOther(lastMark(reader(options), marks), mark) // before it fences one who may write
        val transactions = new Transactions(options, marks)
        try stopIfOther(Option(transactions.last), mark) // from here on nobody else can commit
        catch { case failure: Throwable => transactions.close(); throw failure }
        transactions
    }

  private def stopIfOther(last: Option[Mark], mark: Mark): Unit =
    if (!last.exists(_.run == mark.run))
      throw new ProducerFencedException("Another run of the application has begun, or the marks are gone.")

  /** Keep transactions that are open for the micro-batch after this one, for a minute. */
  def keep(transactions: Transactions, mark: Mark): Unit = {
    val both = (transactions, mark)
    kept.put(transactions.marks, both)
    idle.schedule(
      (() => if (kept.remove(transactions.marks, both)) transactions.close()): Runnable, 1, TimeUnit.MINUTES)
  }

  /** The settings of a consumer beside those of a producer, as text; of a cluster that lets all in, its address. */
  def reader(options: JavaMap[String, String]): String =
    options.getOrDefault("reader", options.get("kafka.bootstrap.servers"))

  private def lastMark(servers: String, marks: String): Option[Mark] =
    lastRecord(servers, marks, _ => true).map { record =>
      val run = new String(record.headers.lastHeader("run").value)
      Mark(new String(record.key), run, new String(record.value).toLong)
    }

  /** The last committed record of a topic with one partition that is of some kind. */
  def lastRecord(servers: String, topic: String, isWanted: Read => Boolean): Option[Read] =
    reading(servers, topic) { (consumer, place) =>
      val first = consumer.beginningOffsets(JavaList.of(place)).get(place).longValue
      val end = consumer.endOffsets(JavaList.of(place)).get(place).longValue
      // Each transaction has two offsets, and one that was aborted nothing to read: look further and further back.
      val starts = Iterator.iterate(4L)(_ * 8).map(back => math.max(first, end - back))
      starts.map { start =>
        var last: Option[Read] = None
        foreachBetween(consumer, place, start, end)(record => if (isWanted(record)) last = Some(record))
        (start, last)
      }.collectFirst { case (start, found) if found.isDefined || start == first => found }.get
    }

  /** All committed records of a topic with one partition, from an offset on. */
  def foreachRecord(servers: String, topic: String, from: Long)(take: Read => Unit): Unit =
    reading(servers, topic) { (consumer, place) =>
      foreachBetween(consumer, place, from, consumer.endOffsets(JavaList.of(place)).get(place).longValue)(take)
    }

  /** Where a topic with one partition ends. */
  def end(servers: String, topic: String): Long =
    reading(servers, topic)((consumer, place) => consumer.endOffsets(JavaList.of(place)).get(place).longValue)

  private def reading[Result](servers: String, topic: String)(
      read: (KafkaConsumer[Array[Byte], Array[Byte]], TopicPartition) => Result): Result = {
    val settings = ClientSettings.of(servers)
    settings.putAll(JavaMap.of[String, Object](
      "isolation.level", "read_committed", "enable.auto.commit", "false", "allow.auto.create.topics", "false"))
    val consumer = new KafkaConsumer(settings, new ByteArrayDeserializer, new ByteArrayDeserializer)
    try {
      val place = new TopicPartition(topic, 0)
      consumer.assign(JavaList.of(place))
      read(consumer, place)
    } finally consumer.close()
  }

  private def foreachBetween(
      consumer: KafkaConsumer[Array[Byte], Array[Byte]], place: TopicPartition, start: Long, end: Long)(
      take: Read => Unit): Unit = {
    var deadline = System.nanoTime + Patience.toNanos
    consumer.seek(place, start)
    while (consumer.position(place) < end) {
      if (System.nanoTime > deadline) throw new TimeoutException(s"The topic '${place.topic}' cannot be read.")
      consumer.poll(Duration.ofMillis(100)).forEach { record =>
        take(record)
        deadline = System.nanoTime + Patience.toNanos
      }
    }
  }
}
