package main

import (
	"context"
	"encoding/json"
	"errors"
	"openapi"
	"os"
)

type generated struct {
	trades  *openapi.TradesAPIService
	context context.Context
}

func input(one trade) openapi.TradeInput {
	input := openapi.NewTradeInput("buy", "MDB", one.Qty)
	input.Price = &one.Price
	return *input
}

func (g generated) append(customer int64, one trade, key string) (appended, error) {
	stored, _, err := g.trades.AppendTrades(g.context, customer).TradeInput(input(one)).IdempotencyKey(key).Execute()
	return told(stored, err)
}

func (g generated) appendMany(customer int64, many []trade, key string) (appended, error) {
	var inputs []openapi.TradeInput
	for _, one := range many {
		inputs = append(inputs, input(one))
	}
	stored, _, err := g.trades.AppendTradeBatch(g.context, customer).TradeInput(inputs).IdempotencyKey(key).Execute()
	return told(stored, err)
}

func told(stored *openapi.AppendedTrades, err error) (appended, error) {
	if err != nil {
		return appended{}, failure(err)
	}
	told := appended{TotalItems: stored.TotalItems, TotalPages: stored.TotalPages}
	for _, it := range stored.Ranges {
		told.Ranges = append(told.Ranges, [2]int64{it.FirstSeq, it.LastSeq})
	}
	return told, nil
}

func (g generated) page(customer, number int64) (rows []row, next bool, err error) {
	listing, _, err := g.trades.ListTrades(g.context, customer).Page(number).Execute()
	if err != nil {
		return nil, false, failure(err)
	}
	for _, it := range listing.Items {
		rows = append(rows, row{it.Seq, it.Qty, it.GetPrice()})
	}
	return rows, listing.Links.HasNext(), nil
}

func (g generated) trade(customer, seq int64) (int64, error) {
	found, _, err := g.trades.GetTrade(g.context, customer, seq).Execute()
	if err != nil {
		return 0, failure(err)
	}
	return found.Seq, nil
}

// The body of an error must be parsed.
func failure(err error) error {
	var answer *openapi.GenericOpenAPIError
	var body openapi.Problem
	if !errors.As(err, &answer) || json.Unmarshal(answer.Body(), &body) != nil {
		return err
	}
	told := &problem{Type: body.Type, Status: body.Status}
	for _, fault := range body.Errors {
		told.Pointers = append(told.Pointers, fault.GetPointer())
	}
	return told
}

func main() {
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: os.Getenv("PAGEBUCKET_URL")}}
	trades := openapi.NewAPIClient(configuration).TradesAPI
	scenario(generated{trades, context.WithValue(context.Background(), openapi.ContextAccessToken, os.Getenv("TOKEN"))})
}
