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
      case failure: PythonFailure =>
        new GenericInternalRow(Array[Any](null, UTF8String.fromString(failure.said)))
      case failure: Exception =>
        val said = Option(failure.getMessage).getOrElse("").takeWhile(_ != '\n')
        new GenericInternalRow(
          Array[Any](null, UTF8String.fromString(s"${failure.getClass.getSimpleName}: $said")))
    }

  override protected def withNewChildInternal(changed: Expression): Attempt = copy(child = changed)
}

/** What a Python function raised for one record. */
class PythonFailure(val said: String) extends RuntimeException(said)

/** The value in a struct of a value and an error; throws the error where there is one. Interpreted, as `Attempt` is. */
case class ValueOrFailure(child: Expression) extends UnaryExpression with CodegenFallback {
  override def dataType: DataType = child.dataType.asInstanceOf[StructType].head.dataType

  override def nullable: Boolean = true

  override def eval(input: InternalRow): Any =
    child.eval(input) match {
      case made: InternalRow if !made.isNullAt(1) => throw new PythonFailure(made.getUTF8String(1).toString)
      case made: InternalRow if !made.isNullAt(0) => made.get(0, dataType)
      case _ => null
    }

  override protected def withNewChildInternal(changed: Expression): ValueOrFailure = copy(child = changed)
}
