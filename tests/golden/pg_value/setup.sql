CREATE TYPE mood AS ENUM ('sad', 'ok', 'so so');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN price AS numeric(10, 2);
CREATE ROLE "some one";
