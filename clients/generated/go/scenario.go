package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
)

// What every generated client for Go must do against a running service. A client is an adapter of a few lines.

type appended struct {
	Ranges     [][2]int64 // first and last seq of each
	TotalItems int64
	TotalPages int64
}

type row struct {
	Seq, Qty int64
	Price    string
}

type trade struct {
	Qty   int64
	Price string
}

type problem struct {
	Type     string
	Status   int32
	Pointers []string
}

func (p *problem) Error() string {
	return fmt.Sprintf("%+v", *p)
}

// Its methods fail with a *problem.
type client interface {
	append(customer int64, one trade, key string) (appended, error)
	appendMany(customer int64, many []trade, key string) (appended, error)
	page(customer, number int64) (rows []row, next bool, err error)
	trade(customer, seq int64) (int64, error)
}

// Goes through the steps and prints a line for each: its name, or its name and what failed.
func scenario(c client) {
	customer, err := strconv.ParseInt(os.Getenv("CUSTOMER"), 10, 64)
	if err != nil {
		panic(err)
	}
	// The second time it is a repeat, with the same answer, and nothing more is stored.
	one := func() error {
		stored, err := c.append(customer, numbered(1), "first")
		if err := equal(err, stored, appended{[][2]int64{{1, 1}}, 1, 1}); err != nil {
			return err
		}
		rows, _, err := c.page(customer, 1)
		return equal(err, rows, rowsUpTo(1))
	}
	many := func() error {
		stored, err := c.appendMany(customer, upTo(2, 24), "many")
		return equal(err, stored, appended{[][2]int64{{2, 24}}, 24, 3})
	}
	step("appends", one)
	step("repeats", one)
	step("batches", func() error {
		if err := many(); err != nil {
			return err
		}
		return many()
	})
	step("walks", func() error {
		if _, err := c.append(customer, numbered(25), "last"); err != nil {
			return err
		}
		var seen []row
		number := int64(0)
		for more := true; more; {
			number++
			rows, next, err := c.page(customer, number)
			if err != nil {
				return err
			}
			seen, more = append(seen, rows...), next
		}
		if err := equal(nil, number, int64(3)); err != nil {
			return err
		}
		return equal(nil, seen, rowsUpTo(25))
	})
	step("problems", func() error {
		_, err := c.trade(customer, 99)
		if err := equal(nil, err, error(&problem{"/problems#item-not-found", 404, nil})); err != nil {
			return err
		}
		refused := numbered(1)
		refused.Qty = 1 << 53
		_, err = c.append(customer, refused, "refused")
		return equal(nil, err, error(&problem{"/problems#invalid-item", 422, []string{"/qty"}}))
	})
}

func numbered(n int64) trade {
	return trade{n, fmt.Sprintf("%d.50", n)}
}

func upTo(first, last int64) (trades []trade) {
	for n := first; n <= last; n++ {
		trades = append(trades, numbered(n))
	}
	return trades
}

func rowsUpTo(last int64) (rows []row) {
	for n := int64(1); n <= last; n++ {
		rows = append(rows, row{n, n, numbered(n).Price})
	}
	return rows
}

func equal(err error, found, expected any) error {
	if err == nil && !reflect.DeepEqual(found, expected) {
		err = fmt.Errorf("%+v, not %+v", found, expected)
	}
	return err
}

func step(name string, run func() error) {
	if err := run(); err != nil {
		sentence, _ := json.Marshal(err.Error())
		fmt.Println(name, string(sentence))
	} else {
		fmt.Println(name)
	}
}
