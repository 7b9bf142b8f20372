-- A report over a random part of the accounts: 40,000 rows by an index, sorted by what no index has.
-- With the default work_mem of 4 MB each sort goes through files. The benchmark puts in the last place where it may begin.
\set first random(1, LAST)
SELECT max(place) FROM (
    SELECT row_number() OVER (ORDER BY hashint4(aid), filler) AS place
    FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 39999
) AS sorted;
