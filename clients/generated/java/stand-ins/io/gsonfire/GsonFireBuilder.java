package io.gsonfire;

import com.google.gson.GsonBuilder;

/** Stands in for the builder of gson-fire, which Debian does not have, without what generated code does not call. */
public class GsonFireBuilder {
  public GsonBuilder createGsonBuilder() {
    return new GsonBuilder();
  }
}
