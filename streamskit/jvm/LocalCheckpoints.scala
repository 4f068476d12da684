package streamskit

import java.io.{BufferedOutputStream, FileOutputStream, OutputStream}
import java.nio.file.{Files, Path => LocalPath, Paths}
import java.nio.file.StandardCopyOption.{ATOMIC_MOVE, REPLACE_EXISTING}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager

/** Writes the files of a checkpoint on a local disk as Java does it: a file beside its place, then one move.
  *
  * Hadoop does the same, but where its native library is missing it starts a process for each permission it sets and
  * each link it looks up: some thirty in every micro-batch with one store. Checkpoints elsewhere are left to it.
  */
class LocalCheckpoints(path: Path, configuration: Configuration)
    extends FileContextBasedCheckpointFileManager(path, configuration) {

  private val isOnDisk = path.getFileSystem(configuration).getUri.getScheme == "file"

  override def createAtomic(target: Path, overwrite: Boolean): CancellableFSDataOutputStream =
    if (!isOnDisk) super.createAtomic(target, overwrite)
    else {
      if (!overwrite && exists(target)) throw new FileAlreadyExistsException(s"$target is there already.")
      val place = local(target)
      val beside = place.resolveSibling(s".${place.getFileName}.${UUID.randomUUID}.tmp")
      new MovedWhenClosed(beside, place, overwrite, new BufferedOutputStream(new FileOutputStream(beside.toFile)))
    }

  override def mkdirs(folder: Path): Unit =
    if (isOnDisk) Files.createDirectories(local(folder)) else super.mkdirs(folder)

  override def exists(target: Path): Boolean = if (isOnDisk) Files.exists(local(target)) else super.exists(target)

  private def local(target: Path): LocalPath = Paths.get(target.toUri.getPath)
}

/** A file that is in its place when it is whole, or never. */
class MovedWhenClosed(beside: LocalPath, place: LocalPath, overwrite: Boolean, stream: OutputStream)
    extends CancellableFSDataOutputStream(stream) {

  private var isDone = false

  override def close(): Unit = synchronized {
    if (!isDone) {
      isDone = true
      try {
        stream.close()
        if (!overwrite && Files.exists(place)) throw new FileAlreadyExistsException(s"$place is there already.")
        Files.move(beside, place, ATOMIC_MOVE, REPLACE_EXISTING)
      } finally Files.deleteIfExists(beside)
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
