package streamskit

import java.io.{BufferedOutputStream, ByteArrayOutputStream, DataOutputStream, FileOutputStream, OutputStream}
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path => LocalPath, Paths}
import java.nio.file.StandardCopyOption.{ATOMIC_MOVE, REPLACE_EXISTING}
import java.nio.file.StandardOpenOption.{CREATE, READ, TRUNCATE_EXISTING, WRITE}
import java.util.UUID
import java.util.zip.CRC32

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager

/** Writes the files of a checkpoint on a local disk as Java does it: a file beside its place, then one move.
  *
  * Hadoop does the same, but where its native library is missing it starts a process for each permission it sets and
  * each link it looks up: some thirty in every micro-batch with one store. Checkpoints elsewhere are left to it. And
  * what Hadoop leaves to the system's good time is on the disk here before it counts: a power failure must not leave an
  * empty file behind that says what a micro-batch reads.
  */
class LocalCheckpoints(path: Path, configuration: Configuration)
    extends FileContextBasedCheckpointFileManager(path, configuration) {

  /** Whether a file is on the disk before it counts. */
  protected def lasts: Boolean = true

  private val isOnDisk = path.getFileSystem(configuration).getUri.getScheme == "file"

  override def createAtomic(target: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    if (!isOnDisk) super.createAtomic(target, overwrite)
    else {
      if (!overwrite && exists(target)) throw new FileAlreadyExistsException(s"$target is there already.")
      val place = local(target)
      val beside = place.resolveSibling(s".${place.getFileName}.${UUID.randomUUID}.tmp")
      new MovedWhenClosed(beside, place, overwrite, new Summed(new FileOutputStream(beside.toFile), lasts), lasts)
    }

  override def mkdirs(folder: Path): Unit =
    if (isOnDisk) Files.createDirectories(local(folder)) else super.mkdirs(folder)

  override def exists(target: Path): Boolean = if (isOnDisk) Files.exists(local(target)) else super.exists(target)

  private def local(target: Path): LocalPath = Paths.get(target.toUri.getPath)
}

/** The same for a test driver, which waits for each record, and of which nothing has to outlive its process. */
class FleetingCheckpoints(path: Path, configuration: Configuration) extends LocalCheckpoints(path, configuration) {
  override protected def lasts: Boolean = false
}

/** A file that is in its place when it is whole, or never; beside it are its checksums, which whoever reads it compares. */
class MovedWhenClosed(beside: LocalPath, place: LocalPath, overwrite: Boolean, stream: Summed, lasts: Boolean)
    extends CancellableFSDataOutputStream(stream) {

  private val sums = place.resolveSibling(s".${place.getFileName}.crc")
  private val sumsBeside = beside.resolveSibling(s"${beside.getFileName}.crc")
  private var isDone = false

  override def close(): Unit = synchronized {
    if (!isDone) {
      isDone = true
      try {
        stream.close()
        if (!overwrite && Files.exists(place)) throw new FileAlreadyExistsException(s"$place is there already.")
        Disk.write(sumsBeside, stream.sums, lasts)
        Files.deleteIfExists(sums) // no sums rather than those of another file, should this program die here
        Files.move(beside, place, ATOMIC_MOVE, REPLACE_EXISTING)
        Files.move(sumsBeside, sums, ATOMIC_MOVE, REPLACE_EXISTING)
        if (lasts) Disk.sync(place.getParent)
      } finally { Files.deleteIfExists(beside); Files.deleteIfExists(sumsBeside) }
    }
  }

  override def cancel(): Unit = synchronized {
    if (!isDone) {
      isDone = true
      try stream.close()
      finally Files.deleteIfExists(beside)
    }
  }
}

/** Writes a file and sums it up, as Hadoop does: the CRC-32 of each 512 bytes. */
class Summed(file: FileOutputStream, lasts: Boolean) extends OutputStream {
  private val Chunk = 512
  private val buffered = new BufferedOutputStream(file)
  private val found = new ByteArrayOutputStream
  private val told = new DataOutputStream(found)
  private val sum = new CRC32
  private var inChunk = 0
  told.writeBytes("crc\u0000")
  told.writeInt(Chunk)

  /** The content of the file with the sums; to be asked for after close(). */
  def sums: Array[Byte] = found.toByteArray

  override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

  override def write(bytes: Array[Byte], start: Int, length: Int): Unit = {
    buffered.write(bytes, start, length)
    var (from, left) = (start, length)
    while (left > 0) {
      val count = math.min(left, Chunk - inChunk)
      sum.update(bytes, from, count)
      from += count; left -= count; inChunk += count
      if (inChunk == Chunk) endChunk()
    }
  }

  override def flush(): Unit = buffered.flush()

  override def close(): Unit = {
    if (inChunk > 0) endChunk()
    buffered.flush()
    if (lasts) file.getFD.sync()
    buffered.close()
  }

  private def endChunk(): Unit = { told.writeInt(sum.getValue.toInt); sum.reset(); inChunk = 0 }
}

/** What has to be on the disk, and not only in the system's memory. */
object Disk {
  private val knowsFolders = !System.getProperty("os.name").startsWith("Windows")

  def write(file: LocalPath, bytes: Array[Byte], lasts: Boolean): Unit = {
    val channel = FileChannel.open(file, CREATE, WRITE, TRUNCATE_EXISTING)
    try { channel.write(java.nio.ByteBuffer.wrap(bytes)); if (lasts) channel.force(true) }
    finally channel.close()
  }

  /** Put the names in a folder on the disk. */
  def sync(folder: LocalPath): Unit = if (knowsFolders) {
    val channel = FileChannel.open(folder, READ)
    try channel.force(true)
    finally channel.close()
  }
}
