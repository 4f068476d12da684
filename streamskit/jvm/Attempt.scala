package org.apache.spark.sql.streamskit

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** An expression that cannot fail: a struct of its child's value, and of what went wrong if it has none.
  *
  * Interpreted, not compiled: Spark would take parts that occur twice out of a compiled expression, and run them where
  * nothing catches what they throw.
  */
case class Attempt(child: Expression) extends UnaryExpression with CodegenFallback {
  override def dataType: DataType =
    new StructType().add("value", child.dataType).add("error", StringType)

  override def nullable: Boolean = false

  override def eval(input: InternalRow): Any =
    try new GenericInternalRow(Array[Any](child.eval(input), null))
    catch {
      case failure: Exception =>
        val said = Option(failure.getMessage).getOrElse("").takeWhile(_ != '\n')
        new GenericInternalRow(
          Array[Any](null, UTF8String.fromString(s"${failure.getClass.getSimpleName}: $said")))
    }

  override protected def withNewChildInternal(changed: Expression): Attempt = copy(child = changed)
}
