-- +goose Up

-- What these functions say is the same each time, but the server planned it anew for each line of the ledger, which took as long
-- as all the rest of a commit.
ALTER FUNCTION ledger_count() SET plan_cache_mode = 'force_generic_plan';
ALTER FUNCTION ledger_days_new() SET plan_cache_mode = 'force_generic_plan';
ALTER FUNCTION ledger_days_change() SET plan_cache_mode = 'force_generic_plan';
ALTER FUNCTION days_months() SET plan_cache_mode = 'force_generic_plan';

-- +goose Down

ALTER FUNCTION ledger_count() RESET plan_cache_mode;
ALTER FUNCTION ledger_days_new() RESET plan_cache_mode;
ALTER FUNCTION ledger_days_change() RESET plan_cache_mode;
ALTER FUNCTION days_months() RESET plan_cache_mode;
