package io.gsonfire;

/** Stands in for a type that generated code imports and does not use. */
public interface TypeSelector<T> {}
