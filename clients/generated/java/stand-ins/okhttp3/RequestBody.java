package okhttp3;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import okio.BufferedSink;

/**
 * OkHttp's own, of Debian's version 3.13, and the functions of version 4, which generated code calls: they have their arguments
 * in the other order.
 */
public abstract class RequestBody {
  public abstract MediaType contentType();

  public long contentLength() throws IOException {
    return -1;
  }

  public abstract void writeTo(BufferedSink sink) throws IOException;

  public static RequestBody create(byte[] content, MediaType type) {
    return new RequestBody() {
      @Override
      public MediaType contentType() {
        return type;
      }

      @Override
      public long contentLength() {
        return content.length;
      }

      @Override
      public void writeTo(BufferedSink sink) throws IOException {
        sink.write(content);
      }
    };
  }

  public static RequestBody create(MediaType type, byte[] content) {
    return create(content, type);
  }

  public static RequestBody create(String content, MediaType type) {
    return create(content.getBytes(StandardCharsets.UTF_8), type);
  }

  public static RequestBody create(File file, MediaType type) {
    try {
      return create(Files.readAllBytes(file.toPath()), type);
    } catch (IOException error) {
      throw new IllegalArgumentException(error);
    }
  }
}
