import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.stream.LongStream;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.TradesApi;
import org.openapitools.client.model.AppendedTrades;
import org.openapitools.client.model.Problem;
import org.openapitools.client.model.ProblemError;
import org.openapitools.client.model.SeqRange;
import org.openapitools.client.model.TradeInput;
import org.openapitools.client.model.TradeListing;

/**
 * What every generated client for Java must do against a running service. The libraries of openapi-generator have the same
 * names; where they differ is {@code Connection}.
 */
public final class Scenario {
  /** What a trade of a page must be. */
  private record Row(long seq, long qty, String price) {}

  private static final long CUSTOMER = Long.parseLong(System.getenv("CUSTOMER"));

  private final TradesApi trades = new TradesApi(Connection.to(System.getenv("PAGEBUCKET_URL"), System.getenv("TOKEN")));

  /** Goes through the steps and prints a line for each: its name, or its name and what failed. */
  public static void main(String[] arguments) {
    var scenario = new Scenario();
    step("appends", scenario::appends);
    step("repeats", scenario::appends);
    step("batches", scenario::batches);
    step("walks", scenario::walks);
    step("problems", scenario::problems);
    // Threads of a client may go on for a while.
    System.exit(0);
  }

  /** The second time it is a repeat, with the same answer, and nothing more is stored. */
  private Void appends() throws ApiException {
    stored(trades.appendTrades(CUSTOMER, trade(1), "first", null), 1, 1, 1);
    return equal(rows(page(1)), rows(1));
  }

  private Void batches() throws ApiException {
    var many = LongStream.rangeClosed(2, 24).mapToObj(Scenario::trade).toList();
    for (int time = 0; time < 2; time++) stored(trades.appendTradeBatch(CUSTOMER, many, "many", null), 2, 24, 3);
    return null;
  }

  private Void walks() throws ApiException {
    trades.appendTrades(CUSTOMER, trade(25), "last", null);
    var seen = new java.util.ArrayList<Row>();
    long number = 0;
    TradeListing listing;
    do {
      listing = page(++number);
      seen.addAll(rows(listing));
    } while (listing.getLinks().getNext() != null);
    equal(number, 3L);
    return equal(seen, rows(25));
  }

  private Void problems() throws Exception {
    problem(() -> trades.getTrade(CUSTOMER, 99L), "/problems#item-not-found", 404, List.of());
    return problem(() -> trades.appendTrades(CUSTOMER, trade(1L << 53), "refused", null), "/problems#invalid-item", 422, List.of("/qty"));
  }

  private static TradeInput trade(long n) {
    return new TradeInput().type(TradeInput.TypeEnum.BUY).ticker("MDB").qty(n).price(n + ".50");
  }

  private TradeListing page(long number) throws ApiException {
    return trades.listTrades(CUSTOMER, number, null, null, null, null, null, null, null, null, null, null, null, null);
  }

  private static List<Row> rows(TradeListing listing) {
    return listing.getItems().stream().map(it -> new Row(it.getSeq(), it.getQty(), it.getPrice())).toList();
  }

  private static List<Row> rows(long last) {
    return LongStream.rangeClosed(1, last).mapToObj(n -> new Row(n, n, n + ".50")).toList();
  }

  private static void stored(AppendedTrades stored, long first, long last, long pages) {
    equal(stored.getRanges(), List.of(new SeqRange().firstSeq(first).lastSeq(last)));
    equal(List.of(stored.getTotalItems(), stored.getTotalPages()), List.of(last, pages));
  }

  private static Void equal(Object found, Object expected) {
    if (Objects.equals(found, expected)) return null;
    throw new IllegalStateException(found + ", not " + expected);
  }

  private static Void problem(Callable<?> call, String type, int status, List<String> pointers) throws Exception {
    Object answer;
    try {
      answer = call.call();
    } catch (ApiException error) {
      Problem problem = Connection.problem(error.getResponseBody());
      List<ProblemError> errors = problem.getErrors() == null ? List.of() : problem.getErrors();
      equal(List.of(problem.getType(), problem.getStatus()), List.of(type, status));
      return equal(errors.stream().map(ProblemError::getPointer).toList(), pointers);
    }
    throw new IllegalStateException("the answer is no problem: " + answer);
  }

  private static void step(String name, Callable<Void> run) {
    try {
      run.call();
      System.out.println(name);
    } catch (Exception error) {
      System.out.println(name + " " + error.toString().replace('\n', ' '));
    }
  }
}
