package database

import "database/sql"

// These functions turn a function that reads a single row into one that can be passed to a
// query. A row that cannot be read ends the query and is not added.

// Fill appends each scanned row to the list.
func Fill[T any](list *[]T, scan func(*sql.Rows, *T) error) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var one T
		if err := scan(rows, &one); err != nil {
			return err
		}
		*list = append(*list, one)
		return nil
	}
}

// Collect is Fill with a scan that returns the value.
func Collect[T any](list *[]T, scan func(Scanner) (T, error)) func(*sql.Rows) error {
	return Fill(list, func(rows *sql.Rows, one *T) (err error) {
		*one, err = scan(rows)
		return err
	})
}

// Column is Fill for rows of a single column.
func Column[T any](list *[]T) func(*sql.Rows) error {
	return Fill(list, func(rows *sql.Rows, one *T) error { return rows.Scan(one) })
}

// Pairs puts rows of a key and a value into a map.
func Pairs[K comparable, V any](into map[K]V) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var key K
		var value V
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		into[key] = value
		return nil
	}
}
