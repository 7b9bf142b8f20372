-- A sort of 100,000 rows, which spills to files where work_mem is small.
\set first random(1, 400000)
SELECT count(*) FROM (
    SELECT aid FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 100000 ORDER BY md5(aid::text) OFFSET 0
) AS sorted;
