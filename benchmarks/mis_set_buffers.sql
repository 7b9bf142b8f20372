-- 100 look-ups by the index in a part of the rows that fits into 128 MB, and one anywhere.
\set first random(1, 300000)
\set any random(1, 4000000)
SELECT sum(abalance) FROM generate_series(0, 99) AS step
JOIN LATERAL (SELECT abalance FROM pgbench_accounts WHERE aid = (:first + step * 2999) % 300000 + 1 OFFSET 0) AS one ON true;
SELECT abalance FROM pgbench_accounts WHERE aid = :any;
