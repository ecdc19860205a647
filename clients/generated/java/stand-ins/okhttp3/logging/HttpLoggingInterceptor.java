package okhttp3.logging;

import java.io.IOException;
import okhttp3.Interceptor;
import okhttp3.Response;

/** Stands in for OkHttp's logging interceptor, which Debian does not have. Nothing is logged. */
public class HttpLoggingInterceptor implements Interceptor {
  public enum Level { BODY }

  public HttpLoggingInterceptor setLevel(Level level) {
    return this;
  }

  @Override
  public Response intercept(Chain chain) throws IOException {
    return chain.proceed(chain.request());
  }
}
